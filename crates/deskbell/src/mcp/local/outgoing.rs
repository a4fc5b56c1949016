//! What goes to a bridge: lines in the order in which they were sent, written by one task.

use std::{io, sync::Arc, time::Duration};

use deskbell_core::text;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _, BufWriter},
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::bridge::hello::TERMINAL_MARK;

/// How many bytes may wait to be written before nothing more is read from the bridge.
const WAITING_LIMIT: usize = 4 * 1024 * 1024;

/// The least time between a notification and an answer behind it.
///
/// TypeScript clients drop a progress notification that they read together with the answer of its request.
const GAP: Duration = Duration::from_millis(2);

/// Sends lines to a bridge. Cheap to clone; sending never waits.
#[derive(Clone)]
pub(in crate::mcp) struct Outgoing {
    queue: mpsc::UnboundedSender<Line>,
    waiting: Arc<watch::Sender<usize>>,
}

/// One line, without its end.
pub(super) struct Line {
    pub(super) sort: Sort,
    pub(super) bytes: Vec<u8>,
}

/// What a line is, as far as its timing depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// The answer to a request.
    Answer,
    /// A notification, or a request to the client.
    Notification,
    /// For the person at the bridge's terminal.
    Terminal,
    /// Nothing: the last line was sent.
    End,
}

impl Outgoing {
    /// Starts the task that writes to `writer`. It cancels `gone` when the bridge no longer reads.
    pub(super) fn start(
        writer: impl AsyncWrite + Send + Unpin + 'static,
        gone: CancellationToken,
    ) -> (Self, tokio::task::JoinHandle<()>) {
        // Unbounded, because sending must keep the order and so cannot wait; the bound is that nothing more is read
        // from the bridge while too much waits here.
        let (queue, lines) = mpsc::unbounded_channel();
        let waiting = Arc::new(watch::Sender::new(0));
        let counted = Arc::clone(&waiting);
        let task = tokio::spawn(async move {
            if write_all(BufWriter::new(writer), lines, &counted).await.is_err() {
                gone.cancel();
            }
        });
        (Self { queue, waiting }, task)
    }

    pub(super) fn send(&self, line: Line) -> io::Result<()> {
        self.waiting.send_modify(|bytes| *bytes += line.bytes.len());
        self.queue.send(line).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Shows `line` to the person at the bridge's terminal.
    pub(in crate::mcp) fn show(&self, line: &str) {
        let bytes = format!("{TERMINAL_MARK}{}", text::one_line(line)).into_bytes();
        // A bridge that is gone has nobody to show it to.
        let _gone = self.send(Line { sort: Sort::Terminal, bytes });
    }

    /// Waits until the bridge has read enough of what was sent.
    pub(super) async fn room(&self) {
        let mut waiting = self.waiting.subscribe();
        // Fails only if the sender is gone, which this very value holds.
        let _open = waiting.wait_for(|bytes| *bytes < WAITING_LIMIT).await;
    }
}

async fn write_all(
    mut writer: BufWriter<impl AsyncWrite + Unpin>,
    mut lines: mpsc::UnboundedReceiver<Line>,
    waiting: &watch::Sender<usize>,
) -> io::Result<()> {
    let mut notified: Option<Instant> = None;
    while let Some(line) = lines.recv().await {
        match line.sort {
            Sort::End => break,
            Sort::Answer => {
                if let Some(notified) = notified.take() {
                    writer.flush().await?;
                    tokio::time::sleep_until(notified + GAP).await;
                }
            }
            Sort::Notification | Sort::Terminal => {}
        }
        writer.write_all(&line.bytes).await?;
        writer.write_all(b"\n").await?;
        if lines.is_empty() {
            writer.flush().await?;
        }
        if line.sort == Sort::Notification {
            notified = Some(Instant::now());
        }
        waiting.send_modify(|bytes| *bytes = bytes.saturating_sub(line.bytes.len()));
    }
    writer.flush().await
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};

    use super::*;

    fn line(sort: Sort, text: &str) -> Line {
        Line { sort, bytes: text.as_bytes().to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_written_apart_from_the_notification_before_it() {
        let (near, far) = tokio::io::duplex(1024);
        let (outgoing, _writing) = Outgoing::start(far, CancellationToken::new());
        let mut lines = BufReader::new(near).lines();
        for round in 0..3 {
            outgoing.send(line(Sort::Notification, "progress")).unwrap();
            outgoing.send(line(Sort::Answer, "answer")).unwrap();
            assert_eq!(lines.next_line().await.unwrap().unwrap(), "progress", "round {round}");
            let notified = Instant::now();
            assert_eq!(lines.next_line().await.unwrap().unwrap(), "answer");
            assert!(notified.elapsed() >= GAP);
        }
        let before = Instant::now();
        for _ in 0..2 {
            outgoing.send(line(Sort::Answer, "answer")).unwrap();
            lines.next_line().await.unwrap().unwrap();
        }
        assert_eq!(before.elapsed(), Duration::ZERO, "answers alone do not wait");
    }

    #[tokio::test(start_paused = true)]
    async fn a_bridge_that_does_not_read_is_not_read_from() {
        let (mut near, far) = tokio::io::duplex(64 * 1024);
        let (outgoing, writing) = Outgoing::start(far, CancellationToken::new());
        let text = "x".repeat(1024 * 1024);
        for _ in 0..5 {
            outgoing.send(line(Sort::Answer, &text)).unwrap();
        }
        let waited = tokio::time::timeout(Duration::from_secs(60), outgoing.room()).await;
        assert!(waited.is_err(), "there is no room while nothing is read");
        let reading = tokio::spawn(async move { near.read_to_end(&mut Vec::new()).await });
        outgoing.room().await;
        outgoing.send(line(Sort::End, "")).unwrap();
        writing.await.unwrap();
        assert_eq!(reading.await.unwrap().unwrap(), 5 * (text.len() + 1));
    }

    #[tokio::test]
    async fn a_terminal_line_is_one_line_with_its_mark() {
        let (near, far) = tokio::io::duplex(1024);
        let (outgoing, _writing) = Outgoing::start(far, CancellationToken::new());
        outgoing.show("two\nlines \u{1b}[31m");
        let line = BufReader::new(near).lines().next_line().await.unwrap().unwrap();
        assert!(line.starts_with("!two") && !line.contains('\u{1b}'), "{line:?}");
    }
}
