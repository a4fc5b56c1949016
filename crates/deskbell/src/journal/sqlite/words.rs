//! The numbers of channel names and reasons.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _};

/// How many words are remembered. Configurations have fewer; after that all are looked up anew.
const REMEMBERED: usize = 4_096;

/// The words that the writer has met.
#[derive(Debug, Default)]
pub(super) struct Words(HashMap<String, i64>);

impl Words {
    /// The number of `word`, which it gets if it has none.
    pub(super) fn id(&mut self, connection: &Connection, word: &str) -> rusqlite::Result<i64> {
        if let Some(id) = self.find(connection, word)? {
            return Ok(id);
        }
        let id =
            connection.prepare_cached("INSERT INTO words (word) VALUES (?1)")?.insert([word])?;
        self.remember(word, id);
        Ok(id)
    }

    /// The number of `word`, if it has one.
    pub(super) fn find(
        &mut self,
        connection: &Connection,
        word: &str,
    ) -> rusqlite::Result<Option<i64>> {
        if let Some(id) = self.0.get(word) {
            return Ok(Some(*id));
        }
        let mut statement = connection.prepare_cached("SELECT id FROM words WHERE word = ?1")?;
        let found = statement.query_row([word], |row| row.get(0)).optional()?;
        if let Some(id) = found {
            self.remember(word, id);
        }
        Ok(found)
    }

    fn remember(&mut self, word: &str, id: i64) {
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        self.0.insert(word.to_owned(), id);
    }
}
