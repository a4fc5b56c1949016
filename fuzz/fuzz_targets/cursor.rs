//! A cursor comes back from clients: it is refused, or it is one that we could have given.
#![no_main]

use deskbell::journal::Cursor;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(cursor) = text.parse::<Cursor>() {
        let again = cursor.to_string().parse::<Cursor>();
        assert_eq!(again.ok(), Some(cursor), "{text:?} does not survive");
    }
});
