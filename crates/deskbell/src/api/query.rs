//! Which events a request asks for: filters and pages in the query of its address.

use std::borrow::Cow;

use deskbell_core::{Invalid, event::Kind, level::LevelRange};

use crate::{
    intake::timestamp,
    journal::{Cursor, EventQuery},
    live::Filter,
};

/// How many entries a list has when the request does not say.
pub(crate) const LIMIT_DEFAULT: usize = 100;

/// How many entries a list has at most.
pub(crate) const LIMIT_MAX: usize = 1_000;

/// The parameters of a query, each taken once by who knows it; what is left over is refused.
pub(crate) struct Parameters<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Parameters<'a> {
    /// The parameters in `query`, the part of an address after `?`.
    pub(crate) fn of(query: Option<&'a str>) -> Self {
        Self(url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).collect())
    }

    /// The value of `name`, if it is given.
    pub(crate) fn take(&mut self, name: &str) -> Option<Cow<'a, str>> {
        let index = self.0.iter().position(|(given, _)| given == name)?;
        Some(self.0.remove(index).1)
    }

    /// The value of `name` as its type.
    pub(crate) fn read<T: std::str::FromStr<Err = Invalid>>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, Invalid> {
        let value = self.take(name).map(|value| value.parse());
        value.transpose().map_err(|refusal| Invalid { field: name.to_owned(), ..refusal })
    }

    /// The value of `name` as a place in the journal, whose newest event is at `newest`.
    pub(crate) fn cursor(&mut self, name: &str, newest: Cursor) -> Result<Option<Cursor>, Invalid> {
        self.read::<Cursor>(name)?.map(|cursor| place(name, cursor, newest)).transpose()
    }

    /// The value of `limit`.
    pub(crate) fn limit(&mut self) -> Result<usize, Invalid> {
        let Some(text) = self.take("limit") else {
            return Ok(LIMIT_DEFAULT);
        };
        let limit = text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
        limit.ok_or_else(|| {
            Invalid::text("limit", &text, format!("a whole number from 1 to {LIMIT_MAX}"))
        })
    }

    /// Refuses what nobody took: a misspelt filter must not show everything.
    pub(crate) fn end(self, known: &str) -> Result<(), Invalid> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, value)) => {
                let name = deskbell_core::text::one_line(&name).into_owned();
                Err(Invalid::text(&name, &value, format!("only the parameters {known}")))
            }
        }
    }
}

/// Refuses a cursor beyond `newest`: it is of another journal, and who reads on from it would miss events in silence.
pub(crate) fn place(field: &str, cursor: Cursor, newest: Cursor) -> Result<Cursor, Invalid> {
    if cursor <= newest {
        return Ok(cursor);
    }
    let expected = format!("a cursor of this journal, whose newest event is at {newest}");
    Err(Invalid::text(field, &cursor.to_string(), expected))
}

/// The names of the parameters that [`filter`] reads.
pub(crate) const FILTERS: &str = "level, context, kind, run, client";

/// Which events somebody wants to see.
pub(crate) fn filter(parameters: &mut Parameters<'_>) -> Result<Filter, Invalid> {
    let kind = parameters.take("kind");
    if let Some(kind) = &kind
        && !Kind::NAMES.contains(&kind.as_ref())
    {
        return Err(Invalid::text("kind", kind, Kind::EXPECTED));
    }
    Ok(Filter {
        levels: parameters.read("level")?.unwrap_or(LevelRange::ALL),
        context: parameters.take("context").map(Cow::into_owned),
        kind: kind.map(Cow::into_owned),
        run: parameters.read("run")?,
        client: parameters.take("client").map(Cow::into_owned),
    })
}

/// Reads which page of which events `query` asks for, of a journal whose newest event is at `newest`.
pub(crate) fn events(query: Option<&str>, newest: Cursor) -> Result<EventQuery, Invalid> {
    let mut parameters = Parameters::of(query);
    let filter = filter(&mut parameters)?;
    let after = parameters.cursor("after", newest)?;
    let newest_first = match parameters.take("order").as_deref() {
        // Who gives a place to go on from reads forwards.
        None => after.is_none(),
        Some("newest") => true,
        Some("oldest") => false,
        Some(other) => return Err(Invalid::text("order", other, "newest or oldest")),
    };
    let found = EventQuery {
        after,
        before: parameters.cursor("before", newest)?,
        levels: filter.levels,
        context: filter.context,
        kind: filter.kind,
        run: filter.run,
        client: filter.client,
        since: parameters
            .take("since")
            .map(|since| timestamp::read("since", &since))
            .transpose()?,
        newest_first,
        ..EventQuery::first(parameters.limit()?)
    };
    parameters.end(&format!("{FILTERS}, after, before, since, order, limit"))?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEWEST: Cursor = Cursor { major: 0, minor: 0x1f };

    #[test]
    fn pages_go_forwards_from_a_place_and_backwards_without_one() {
        assert!(events(None, NEWEST).unwrap().newest_first);
        let query = events(Some("after=0-1f&level=error..&limit=7"), NEWEST).unwrap();
        assert!(!query.newest_first);
        assert_eq!(query.limit, 7);
        assert_eq!(query.levels.to_string(), "error..");
        assert!(events(Some("after=0-1f&order=newest"), NEWEST).unwrap().newest_first);
    }

    #[test]
    fn what_is_misspelt_is_refused() {
        #[track_caller]
        fn check(query: &str, field: &str) {
            assert_eq!(events(Some(query), NEWEST).unwrap_err().field, field, "{query}");
        }
        check("levle=error", "levle");
        check("level=loud", "level");
        check("limit=0", "limit");
        check("limit=1001", "limit");
        check("after=yesterday", "after");
        check("after=0-20", "after");
        check("before=1-0", "before");
        check("since=yesterday", "since");
        check("kind=ask", "kind");
        check("order=random", "order");
        check("level=error&level=info", "level");
    }
}
