//! What becomes of the files that go out with a message.

use std::path::Path;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use deskbell_channels::{ChannelKind, Delivered, Transport, deliver, files::Files};
use deskbell_core::{
    Message,
    attachment::{Attachment, Place},
    delivery::Failure,
    event::Format,
};
use tempfile::TempDir;
use wiremock::{Mock, MockServer, Request, ResponseTemplate, matchers::any};

use crate::{
    requests::{read, texts},
    sample::{context, message},
    stand_in::{accepted, attempt_in, block_on, channel, previewed},
};

/// What is in the file.
const HELD: &[u8] = b"what was attached\x00\xff";

/// A folder with a file that the kind takes if it takes any, and what attaches it.
fn file_for(kind: &ChannelKind) -> (TempDir, Attachment) {
    let name = match kind.files {
        Files::Pictures { .. } => "flamegraph.png",
        Files::Not | Files::Within(_) | Files::After(_) => "flamegraph.txt",
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join(name);
    std::fs::write(&path, HELD).unwrap();
    (folder, attached(&path))
}

fn attached(path: &Path) -> Attachment {
    Attachment::new(Place::Path(path.to_str().unwrap().to_owned()), None, None)
}

/// Whether the file is in a request, as it is or as Base64.
fn holds(request: &Request) -> bool {
    let encoded = BASE64_STANDARD.encode(HELD);
    let has = |bytes: &[u8]| request.body.windows(bytes.len()).any(|window| window == bytes);
    has(HELD) || has(encoded.as_bytes())
}

/// A file goes out where the far end takes files; elsewhere the text says its name and size, and where another one is.
pub(crate) fn attachments_are_told(kind: &'static ChannelKind) {
    const URL: &str = "https://ci.example.com/report.pdf";
    let (folder, file) = file_for(kind);
    let name = file.name.clone();
    let gone = attached(&folder.path().canonicalize().unwrap().join("gone.log"));
    let url = Attachment::new(Place::Url(URL.to_owned()), None, None);
    for format in [Format::Text, Format::Markdown] {
        let attachments = vec![url.clone(), file.clone(), gone.clone()];
        let message = Message { attachments, ..message("two files", format) };
        let requests = previewed(kind, &message, true);
        let told: Vec<_> = requests.iter().flat_map(texts).map(|text| read(kind, &text)).collect();
        let says = |what: &str| told.iter().any(|text| text.contains(what));
        assert!(says(URL) && says("gone.log (cannot be read: "), "{told:#?}");
        let is_sent = kind.files != Files::Not;
        assert!(says(&format!("{name} (19 bytes)")) != is_sent, "{told:#?}");
        assert!(format!("{requests:?}").contains(&name));
        if is_sent && matches!(kind.about.transport, Transport::Http { .. }) {
            let (outcome, sent) = attempt_in(kind, &message, &[], accepted(kind), |_| {});
            outcome.unwrap();
            assert_eq!(sent.iter().filter(|request| holds(request)).count(), 1);
        }
    }
}

/// Delivers a message with a file to a far end that gives `reply` to each request with the file in it. Gives what it
/// came to, and the requests without the file.
fn deliver_to_one_that_answers(
    kind: &'static ChannelKind,
    reply: ResponseTemplate,
) -> (Delivered, Vec<Request>) {
    let (_folder, file) = file_for(kind);
    let message = Message { attachments: vec![file], ..message("the text", Format::Text) };
    block_on(async {
        let server = MockServer::start().await;
        Mock::given(holds).respond_with(reply).mount(&server).await;
        Mock::given(any()).respond_with(accepted(kind)).mount(&server).await;
        let cx = context(&message, Some(&server.uri()));
        let delivered = deliver(kind, &*channel(kind), &message, &cx).await;
        let requests = server.received_requests().await.unwrap();
        (delivered, requests.into_iter().filter(|request| !holds(request)).collect())
    })
}

/// The text arrives, says what is missing, and the delivery says it too.
pub(crate) fn a_file_that_is_refused_is_told(kind: &'static ChannelKind) {
    let (delivered, requests) = deliver_to_one_that_answers(kind, ResponseTemplate::new(400));
    assert!(delivered.failure.is_none(), "{delivered:?}");
    let [without] = delivered.without.as_slice() else { panic!("{delivered:?}") };
    assert!(without.contains("flamegraph.") && without.contains("` was not sent: "), "{without}");
    let told: Vec<_> =
        requests.iter().map(|request| String::from_utf8_lossy(&request.body)).collect();
    let says =
        |words: [&str; 2]| told.iter().any(|told| words.iter().all(|word| told.contains(word)));
    assert!(says(["the", "text"]), "{told:#?}");
    assert!(says(["flamegraph", "not"]) && says(["19", "taken"]), "{told:#?}");
}

/// It is tried again, and the error says which piece it is about where the text has arrived.
pub(crate) fn a_file_that_cannot_go_now_is_temporary(kind: &'static ChannelKind) {
    let (delivered, _) = deliver_to_one_that_answers(kind, ResponseTemplate::new(503));
    let failure = delivered.failure.unwrap();
    assert!(matches!(failure.failure, Failure::Temporary { .. }), "{failure:?}");
    if let Files::After(_) = kind.files {
        let about = "the text arrived, but not `flamegraph.txt`: ";
        assert!(failure.message.starts_with(about), "{failure:?}");
        assert_eq!(delivered.arrived.len(), 1);
    }
}
