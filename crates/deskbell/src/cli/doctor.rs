//! `deskbell doctor`: checks the whole way and says what to do.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
    time::Duration,
};

use deskbell_core::{clock::Clock as _, text};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tokio::{net::TcpStream, time::Instant};

use super::{
    Client, Exit, Output, channel,
    output::{ERROR, GOOD, STRONG, WARNING, styled},
    show,
};
use crate::{
    api::{
        LIMIT_MAX,
        wire::{ChannelList, DeliveryList, EventPage, StatusBody},
    },
    app::SystemClock,
    config::{
        self, Severity,
        load::{self, Project, Sources},
    },
    daemon::DaemonInfo,
    disk::{Room, Verdict},
    paths::Paths,
};

/// How many times the disk is measured.
const FLUSHES: usize = 5;

/// A disk that takes longer than this to keep something makes every report slow.
const SLOW_FLUSH: Duration = Duration::from_millis(50);

/// How far a clock may be behind the newest event: one that is corrected all the time moves a little.
const CLOCK_SLACK: SignedDuration = SignedDuration::from_secs(1);

/// What ends a snooze.
const SNOOZED: &str =
    "what is for it comes then; `deskbell snooze CHANNEL --off` (or `all`) ends it";

/// How long the HTTP listener may take to answer.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Checks the whole way from this command to each channel, and says what to do.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  deskbell doctor
  deskbell doctor --json")]
pub(crate) struct Args {
    /// Print each check as a line of JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args, output: &Output) -> anyhow::Result<Exit> {
    let mut report = Report { json: args.json, output, is_bad: false, is_warned: false };
    let Some(paths) = folder(&mut report)? else {
        return Ok(Exit::Failed);
    };
    disk(&mut report, &paths)?;
    space(&mut report, Room::of(&paths.state))?;
    configuration(&mut report, &paths)?;
    project(&mut report, &paths)?;
    let client = Client::new(paths);
    if let Some(status) = daemon(&mut report, &client).await? {
        journal(&mut report, &client).await?;
        clock(&mut report, &client).await?;
        channels(&mut report, &client, status.pid).await?;
        given_up(&mut report, &client).await?;
        web(&mut report, &client).await?;
    }
    if !report.json {
        output.note(match (report.is_bad, report.is_warned) {
            (true, _) => "something needs you",
            (false, true) => "it works; the warnings say what could be better",
            (false, false) => "all is well",
        });
    }
    Ok(if report.is_bad { Exit::Failed } else { Exit::Done })
}

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Finding {
    Good,
    Warning,
    Bad,
}

#[derive(Debug, Serialize)]
struct Check<'a> {
    check: &'a str,
    finding: Finding,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<&'a str>,
}

struct Report<'a> {
    json: bool,
    output: &'a Output,
    is_bad: bool,
    is_warned: bool,
}

impl Report<'_> {
    fn good(&mut self, check: &str, detail: impl Into<String>) -> io::Result<()> {
        self.tell(&Check { check, finding: Finding::Good, detail: detail.into(), advice: None })
    }

    fn warning(&mut self, check: &str, detail: impl Into<String>, advice: &str) -> io::Result<()> {
        let advice = Some(advice);
        self.tell(&Check { check, finding: Finding::Warning, detail: detail.into(), advice })
    }

    fn bad(&mut self, check: &str, detail: impl Into<String>, advice: &str) -> io::Result<()> {
        let advice = Some(advice);
        self.tell(&Check { check, finding: Finding::Bad, detail: detail.into(), advice })
    }

    fn tell(&mut self, check: &Check<'_>) -> io::Result<()> {
        self.is_bad |= check.finding == Finding::Bad;
        self.is_warned |= check.finding == Finding::Warning;
        if self.json {
            return self.output.json(check);
        }
        let word = match check.finding {
            Finding::Good => styled(GOOD, "ok     "),
            Finding::Warning => styled(WARNING, "warning"),
            Finding::Bad => styled(ERROR, "problem"),
        };
        let detail = text::one_line(&check.detail);
        self.output.line(format_args!("{word}  {}: {detail}", styled(STRONG, check.check)))?;
        check.advice.map_or(Ok(()), |advice| self.output.line(format_args!("         → {advice}")))
    }
}

fn folder(report: &mut Report<'_>) -> anyhow::Result<Option<Paths>> {
    let advice = "choose another folder with DESKBELL_STATE_DIR";
    let paths = match Paths::from_process() {
        Ok(paths) => paths,
        Err(error) => {
            report.bad("state folder", error.to_string(), advice)?;
            return Ok(None);
        }
    };
    match paths.create_state() {
        Ok(()) => {
            report.good("state folder", paths.state.display().to_string())?;
            Ok(Some(paths))
        }
        Err(error) => {
            let detail = format!("{:#}", anyhow::Error::from(error));
            report.bad("state folder", detail, advice)?;
            Ok(None)
        }
    }
}

/// How long the disk takes to keep something. Every accept waits for that.
fn disk(report: &mut Report<'_>, paths: &Paths) -> io::Result<()> {
    let path = paths.state.join(format!("doctor-{}.tmp", std::process::id()));
    let measured = flush_time(&path);
    drop(fs::remove_file(&path));
    match measured {
        Ok(time) if time < SLOW_FLUSH => {
            report.good("disk", format!("keeps a page within {}", millis(time)))
        }
        Ok(time) => report.warning(
            "disk",
            format!("takes {} to keep a page", millis(time)),
            "every report waits that long; put the state folder on a faster disk",
        ),
        Err(error) => report.bad(
            "disk",
            format!("failed to write to the state folder: {error}"),
            "free some space, or make the folder writable",
        ),
    }
}

/// How much room there is. The page that was written a moment ago may have been the last one.
fn space(report: &mut Report<'_>, room: io::Result<Room>) -> io::Result<()> {
    let advice = "free some space, or shorten `keep_history`";
    match room.map(|room| (room.verdict(), room)) {
        Ok((Verdict::Enough, room)) => report.good("space", room.to_string()),
        Ok((Verdict::Low, room)) => {
            report.warning("space", format!("{room}; {}", room.needed()), advice)
        }
        Ok((Verdict::Full, room)) => {
            report.bad("space", format!("{room}; {}", room.needed()), advice)
        }
        Err(error) => report.warning(
            "space",
            format!("failed to ask for the room on the disk: {error}"),
            "see to it that the disk does not fill up",
        ),
    }
}

/// The middle one of a few measurements.
fn flush_time(path: &Path) -> io::Result<Duration> {
    let mut file = File::create(path)?;
    let mut times = Vec::with_capacity(FLUSHES);
    for _ in 0..FLUSHES {
        let start = Instant::now();
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times.get(FLUSHES / 2).copied().unwrap_or_default())
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1_000.0)
}

async fn daemon(report: &mut Report<'_>, client: &Client) -> io::Result<Option<StatusBody>> {
    let status = match client.get::<StatusBody>("/v1/status").await {
        Ok(status) => status,
        Err(error) => {
            let log = client.paths().log();
            let advice =
                format!("look into {}, or run `deskbell serve` to see it start", log.display());
            report.bad("daemon", format!("{error:#}"), &advice)?;
            return Ok(None);
        }
    };
    let detail = format!("version {}, process {}", status.version, status.pid);
    if status.version == crate::VERSION {
        report.good("daemon", detail)?;
    } else {
        let detail = format!("{detail}; this command is version {}", crate::VERSION);
        let advice =
            format!("end it with `kill {}`; the next command starts the new one", status.pid);
        report.warning("daemon", detail, &advice)?;
    }
    Ok(Some(status))
}

async fn journal(report: &mut Report<'_>, client: &Client) -> io::Result<()> {
    let start = Instant::now();
    match client.check("/readyz").await {
        Ok(()) => report.good(
            "journal",
            format!("reads and writes, {} there and back", millis(start.elapsed())),
        ),
        Err(error) => report.bad(
            "journal",
            format!("{error:#}"),
            "nothing is accepted until this is mended; the daemon's log says more",
        ),
    }
}

/// A clock that was set back shows in the newest event, and leads to odd waits.
async fn clock(report: &mut Report<'_>, client: &Client) -> anyhow::Result<()> {
    let newest: EventPage<'static> = client.get("/v1/events?limit=1").await?;
    // The time is asked for after the event: what is accepted meanwhile is no proof of anything.
    let now = client.get::<StatusBody>("/v1/status").await?.now;
    match newest.events.first().map(|event| event.at).filter(|at| was_set_back(now, *at)) {
        Some(at) => report.warning(
            "clock",
            format!("it is {now}, and the newest event is of {at}"),
            "the clock was set back; what waits for a time may wait longer",
        )?,
        None => report.good("clock", format!("{now:.0}"))?,
    }
    Ok(())
}

/// Whether a clock that shows `now` was set back since an event of `at` was accepted.
fn was_set_back(now: Timestamp, at: Timestamp) -> bool {
    at.duration_since(now) > CLOCK_SLACK
}

fn configuration(report: &mut Report<'_>, paths: &Paths) -> io::Result<()> {
    let found = config::check(&Sources::of_the_daemon(paths));
    if found.findings.is_empty() {
        return report.good("configuration", found.size());
    }
    for finding in &found.findings {
        let usual = "correct it; the daemon takes it up by itself";
        let advice = finding.hint.as_deref().unwrap_or(usual);
        match finding.severity {
            Severity::Warning => report.warning("configuration", finding.to_string(), advice)?,
            Severity::Problem | Severity::Fatal => {
                report.bad("configuration", finding.to_string(), advice)?;
            }
        }
    }
    Ok(())
}

/// What the project of the current folder changes for what is reported from it.
fn project(report: &mut Report<'_>, paths: &Paths) -> io::Result<()> {
    let Ok(folder) = std::env::current_dir() else { return Ok(()) };
    match load::project(&Sources::of_a_folder(paths, folder)) {
        Ok(None) => Ok(()),
        Ok(Some(Project { file, routes, is_trusted })) => {
            let routes = routes.map_or(0, |routes| routes.len());
            let effect = match (routes, is_trusted) {
                (0, _) => "no routes",
                (_, true) => "routes in place of yours",
                (_, false) => "routes that add to yours, because you do not trust it",
            };
            report.good("project", format!("{}: {effect}", file.display()))
        }
        Err(errors) => report.warning(
            "project",
            errors.to_string(),
            "correct it; until then your own configuration holds in this folder",
        ),
    }
}

async fn channels(report: &mut Report<'_>, client: &Client, pid: u32) -> anyhow::Result<()> {
    let list: ChannelList = client.get("/v1/channels").await?;
    // The daemon has an environment of its own, so it may miss what this command finds.
    for problem in &list.problems {
        let advice = if problem.of_environment {
            format!(
                "end the daemon with `kill {pid}`, and start it again where the variable is set"
            )
        } else {
            "correct it; the daemon takes it up by itself".to_owned()
        };
        report.bad("channels", format!("the daemon says: {}", problem.text), &advice)?;
    }
    if list.channels.is_empty() && list.problems.is_empty() {
        report.good(
            "channels",
            "none configured; events are in the journal and on the live stream",
        )?;
    }
    let dates = show::Dates::at(SystemClock.now());
    for channel in &list.channels {
        let check = format!("channel {}", channel.name);
        let error = channel.last_error.as_ref().map(|last| last.error.as_str()).unwrap_or_default();
        let detail = format!(
            "{}, {}, {} sent, {} failed",
            channel.kind,
            show::flow(&channel.flow),
            channel.sent,
            channel.failed
        );
        if let Some(stand_in) = &channel.stand_in {
            let told = channel::stood_in(stand_in, &channel.kind);
            report.warning(&check, told, "take out its `stand_in` when you have tried it")?;
        }
        match channel.flow.as_str() {
            "open" | "limited" => match &channel.unseen {
                Some(unseen) => report.warning(&check, unseen, channel::seen_again(channel))?,
                None => match channel::silent(channel, &dates) {
                    Some(silent) if channel.snoozed_until.is_some() => {
                        report.warning(&check, format!("{detail}, {silent}"), SNOOZED)?;
                    }
                    Some(silent) => report.good(&check, format!("{detail}, {silent}"))?,
                    None => report.good(&check, detail)?,
                },
            },
            "broken" => report.bad(
                &check,
                format!("{detail}: {error}"),
                &format!("mend the cause, then run `deskbell channel test {}`", channel.name),
            )?,
            "paused" => report.warning(
                &check,
                format!("{detail}: {error}"),
                "the far end asked to be left alone; it is tried again by itself",
            )?,
            _ => report.warning(
                &check,
                format!("{detail}: {error}"),
                &format!(
                    "it is tried again by itself; `deskbell channel test {}` tries at once",
                    channel.name
                ),
            )?,
        }
    }
    Ok(())
}

async fn given_up(report: &mut Report<'_>, client: &Client) -> anyhow::Result<()> {
    let query = format!("/v1/deliveries?state=given_up&limit={LIMIT_MAX}");
    let list: DeliveryList = client.get(&query).await?;
    match list.deliveries.len() {
        0 => report.good("deliveries", "none was given up")?,
        count => report.warning(
            "deliveries",
            format!("{count} given up"),
            "`deskbell delivery list --state given_up` shows them, `deskbell delivery retry ID` sends one again",
        )?,
    }
    Ok(())
}

async fn web(report: &mut Report<'_>, client: &Client) -> anyhow::Result<()> {
    let Some(info) = DaemonInfo::read(client.paths()) else {
        let advice = "end the daemon; the next command starts one that does";
        report.warning("HTTP", "the daemon does not say where it listens", advice)?;
        return Ok(());
    };
    let Some(address) = info.address else {
        report.good("HTTP", "not served: the daemon is a `deskbell mcp --in-process`")?;
        return Ok(());
    };
    let failed = match tokio::time::timeout(CONNECT_LIMIT, TcpStream::connect(address)).await {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("no answer".to_owned()),
    };
    match failed {
        None => report.good("HTTP", format!("http://{address}"))?,
        Some(error) => {
            let detail = format!("http://{address}: {error}");
            report.bad("HTTP", detail, "see the daemon's log")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_corrected_a_little_was_not_set_back() {
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        assert!(!was_set_back(at(5_000), at(4_000)));
        assert!(!was_set_back(at(5_000), at(5_020)));
        assert!(was_set_back(at(5_000), at(7_000)));
    }
}
