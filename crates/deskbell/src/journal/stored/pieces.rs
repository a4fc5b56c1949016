//! The form in which the pieces of a message that have arrived are kept.

use std::borrow::Cow;

use deskbell_core::delivery::{Arrived, Mark, Receipt};
use serde::{Deserialize, Serialize};

use super::Unreadable;

/// A piece in the column `message_id`: the far end's id, or the id and the piece's marks.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredPiece<'a> {
    Unmarked(Option<Cow<'a, str>>),
    At(Option<Cow<'a, str>>, u32),
    Marked(Option<Cow<'a, str>>, u32, u32),
}

/// The form of pieces that have arrived in the column `message_id`: the id itself where one is all there is, else a
/// JSON array. A delivery that was sent and has no id needs none; one that is not sent is to know what has arrived.
pub(in crate::journal) fn pieces(
    arrived: &[Arrived],
    is_sent: bool,
) -> Result<Option<String>, Unreadable> {
    let is_needed = !is_sent || arrived.iter().any(|piece| piece.receipt.message_id.is_some());
    let stored: Vec<_> = arrived
        .iter()
        .filter(|_| is_needed)
        .map(|Arrived { place, text, receipt }| {
            let id = receipt.message_id.as_deref().map(Cow::Borrowed);
            match (*place, *text) {
                (Mark::NONE, Mark::NONE) => StoredPiece::Unmarked(id),
                (place, Mark::NONE) => StoredPiece::At(id, place.0),
                (place, text) => StoredPiece::Marked(id, place.0, text.0),
            }
        })
        .collect();
    match stored.as_slice() {
        [] => Ok(None),
        [StoredPiece::Unmarked(Some(id))] if is_sent && !id.starts_with('[') => {
            Ok(Some((**id).to_owned()))
        }
        pieces => {
            serde_json::to_string(pieces).map(Some).map_err(|e| Unreadable::new("receipt", e))
        }
    }
}

/// The pieces in the column `message_id`.
pub(in crate::journal) fn pieces_of(column: Option<&str>) -> Result<Vec<Arrived>, Unreadable> {
    let stored = match column {
        None => Vec::new(),
        Some(ids) if ids.starts_with('[') => {
            serde_json::from_str(ids).map_err(|error| Unreadable::new("receipt", error))?
        }
        Some(id) => vec![StoredPiece::Unmarked(Some(id.into()))],
    };
    let piece = |stored| {
        let (id, place, text) = match stored {
            StoredPiece::Unmarked(id) => (id, 0, 0),
            StoredPiece::At(id, place) => (id, place, 0),
            StoredPiece::Marked(id, place, text) => (id, place, text),
        };
        let receipt = Receipt { message_id: id.map(Cow::into_owned) };
        Arrived { place: Mark(place), text: Mark(text), receipt }
    };
    Ok(stored.into_iter().map(piece).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_are_read_back() {
        #[track_caller]
        fn check(arrived: &[(Option<&str>, u32, u32)], is_sent: bool, column: Option<&str>) {
            let piece = |(id, place, text): &(Option<&str>, _, _)| Arrived {
                place: Mark(*place),
                text: Mark(*text),
                receipt: Receipt { message_id: id.map(str::to_owned) },
            };
            let given: Vec<_> = arrived.iter().map(piece).collect();
            let stored = pieces(&given, is_sent).unwrap();
            assert_eq!(stored.as_deref(), column);
            if column.is_some() {
                assert_eq!(pieces_of(stored.as_deref()).unwrap(), given);
            }
        }
        check(&[(Some("m1"), 0, 0)], true, Some("m1"));
        check(&[(Some("[1]"), 0, 0)], true, Some(r#"["[1]"]"#));
        check(&[(Some("m1"), 0, 0), (None, 0, 0)], true, Some(r#"["m1",null]"#));
        check(&[(Some("m1"), 7, 0), (None, 8, 0)], true, Some(r#"[["m1",7],[null,8]]"#));
        check(&[(None, 7, 0), (None, 8, 0)], true, None);
        check(&[(None, 7, 9)], false, Some("[[null,7,9]]"));
        check(&[(None, 0, 9)], false, Some("[[null,0,9]]"));
        check(&[], false, None);
    }
}
