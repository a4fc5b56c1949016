//! What a person at a terminal sees of an event: one line, on the target `llm_notify`.
