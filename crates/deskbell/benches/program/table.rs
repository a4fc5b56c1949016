//! What was measured, as a table with ratios.

use std::{fmt, time::Duration};

use crate::machine;

/// One figure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Measured {
    Time(Duration),
    Bytes(u64),
    PerSecond(f64),
}

/// Which figures are better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Better {
    Less,
    More,
}

impl Measured {
    #[expect(clippy::cast_precision_loss, reason = "a count of requests is far below 2^52")]
    pub(crate) fn rate(count: usize, time: Duration) -> Self {
        Self::PerSecond(count as f64 / time.as_secs_f64())
    }

    #[expect(clippy::cast_precision_loss, reason = "a size of memory is far below 2^52")]
    fn number(self) -> f64 {
        match self {
            Self::Time(time) => time.as_secs_f64(),
            Self::Bytes(bytes) => bytes as f64,
            Self::PerSecond(rate) => rate,
        }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) if *time < Duration::from_millis(1) => {
                write!(f, "{} µs", time.as_micros())
            }
            Self::Time(time) => write!(f, "{:.1} ms", time.as_secs_f64() * 1e3),
            Self::Bytes(_) => write!(f, "{:.1} MB", self.number() / 1e6),
            Self::PerSecond(rate) => write!(f, "{rate:.0}/s"),
        }
    }
}

/// Times in order.
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn of(times: impl IntoIterator<Item = Duration>) -> Self {
        let mut times: Vec<_> = times.into_iter().collect();
        times.sort_unstable();
        Self(times)
    }

    pub(crate) fn p50(&self) -> Measured {
        self.at(50)
    }

    pub(crate) fn p99(&self) -> Measured {
        self.at(99)
    }

    pub(crate) fn worst(&self) -> Measured {
        self.at(100)
    }

    /// The smallest time that so many of a hundred do not exceed.
    fn at(&self, percent: usize) -> Measured {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        Measured::Time(*self.0.get(rank - 1).unwrap())
    }
}

/// Rows in order of their first figure, columns in order of theirs; the first column is what the others are
/// compared with.
pub(crate) struct Table {
    columns: Vec<String>,
    rows: Vec<Row>,
    /// The load of the machine before the first measurement.
    pub(crate) load_before: String,
}

struct Row {
    name: String,
    better: Better,
    /// The figures with the names of their columns.
    cells: Vec<(String, Measured)>,
}

impl Default for Table {
    fn default() -> Self {
        Self { columns: Vec::new(), rows: Vec::new(), load_before: machine::load() }
    }
}

impl Table {
    pub(crate) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn put(
        &mut self,
        column: &str,
        row: &str,
        better: Better,
        measured: Option<Measured>,
    ) {
        let Some(measured) = measured else {
            return;
        };
        if !self.columns.iter().any(|known| known == column) {
            self.columns.push(column.to_owned());
        }
        let cell = (column.to_owned(), measured);
        match self.rows.iter_mut().find(|known| known.name == row) {
            Some(known) => known.cells.push(cell),
            None => self.rows.push(Row { name: row.to_owned(), better, cells: vec![cell] }),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| | {} |", self.columns.join(" | "))?;
        writeln!(f, "|---|{}", "---|".repeat(self.columns.len()))?;
        for Row { name, better, cells } in &self.rows {
            let figure = |column: &String| cells.iter().find(|(known, _)| known == column);
            let first =
                self.columns.first().and_then(figure).map(|(_, measured)| measured.number());
            write!(f, "| {name} |")?;
            for column in &self.columns {
                match figure(column) {
                    None => write!(f, " – |")?,
                    Some((_, measured)) if Some(column) == self.columns.first() => {
                        write!(f, " {measured} |")?;
                    }
                    Some((_, measured)) => {
                        let ratio = measured.number() / first.unwrap_or(f64::NAN);
                        let ratio = if *better == Better::Less { ratio } else { 1.0 / ratio };
                        write!(f, " {measured} ({ratio:.2}×) |")?;
                    }
                }
            }
            writeln!(f)?;
        }
        write!(f, "(2.00×: the first column is twice as good.)")
    }
}
