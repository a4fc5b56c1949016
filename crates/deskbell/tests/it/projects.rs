//! What a folder says for itself: a project's routes, and the `config.sh` of mcp-push.

use std::{fs, path::Path};

use serde_json::json;

use crate::support::{Desk, FarEnd, until};

#[test]
fn a_project_chooses_the_routes_for_what_is_reported_from_its_folder() {
    let (ours, theirs) = (FarEnd::start(), FarEnd::start());
    let channel = |name: &str, far_end: &FarEnd| {
        format!("[channels.{name}]\nkind = \"webhook_json\"\nurl = \"{}\"\n", far_end.url())
    };
    let desk = Desk::with_config(&format!(
        "{}{}[[routes]]\nchannels = [\"ours\"]\n",
        channel("ours", &ours),
        channel("theirs", &theirs)
    ));
    let project = desk.folder().join("project");
    fs::create_dir(&project).unwrap();
    fs::write(project.join(".deskbell.toml"), "[[routes]]\nchannels = [\"theirs\"]\n").unwrap();
    let trusted = desk.command(&["trust"]).current_dir(&project).status().unwrap();
    assert!(trusted.success());

    let notify = |folder, text| {
        let mut command = desk.command(&["notify", text]);
        assert!(command.current_dir(folder).status().unwrap().success());
    };
    notify(&project, "from the project");
    theirs.wait_for(1);
    notify(&desk.folder(), "from elsewhere");
    ours.wait_for(1);
    assert_eq!((ours.requests().len(), theirs.requests().len()), (1, 1));
    assert!(theirs.requests().concat_bodies().contains("from the project"));
}

#[test]
fn a_project_that_nobody_trusts_keeps_nothing_back_and_is_named() {
    let far_end = FarEnd::start();
    let user = format!(
        "[channels.far]\nkind = \"webhook_json\"\nurl = \"{}\"\n[[routes]]\nchannels = [\"far\"]\n",
        far_end.url()
    );
    let desk = Desk::with_config(&user);
    let file = fs::canonicalize(desk.folder()).unwrap().join(".deskbell.toml");
    fs::write(&file, "[[routes]]\nchannels = []\n").unwrap();
    let (_, stdout, stderr) = desk.run(&["notify", "a", "-l", "emergency", "--json"]);
    assert!(stdout.contains(r#""channels":["far"]"#), "{stdout}{stderr}");
    far_end.wait_for(1);
    let named = format!("route 1 of {} (everything → nowhere): matches", file.display());
    let (_, stdout, _) = desk.run(&["why"]);
    assert!(stdout.contains(&named) && stdout.contains("route 1 (everything → far)"), "{stdout}");
    let (_, stdout, _) = desk.run(&["doctor"]);
    let told = format!("{}: routes that add to yours", file.display());
    assert!(stdout.contains(&told), "{stdout}");

    assert_eq!(desk.run(&["trust"]).0, 0);
    let (_, stdout, _) = desk.run(&["doctor"]);
    assert!(stdout.contains(": routes in place of yours"), "{stdout}");
    until("the routes of the project", || {
        let (_, stdout, _) = desk.run(&["notify", "b", "-l", "emergency", "--json"]);
        stdout.contains(r#""channels":[]"#).then_some(())
    });
}

#[test]
fn the_channels_of_a_trusted_project_are_for_its_own_reports() {
    let (ours, theirs) = (FarEnd::start(), FarEnd::start());
    let channel = |name: &str, far_end: &FarEnd| {
        format!("[channels.{name}]\nkind = \"webhook_json\"\nurl = \"{}\"\n", far_end.url())
    };
    let mut desk = Desk::with_config(&channel("ours", &ours));
    desk.serve();
    let project = desk.folder().join("project");
    fs::create_dir(&project).unwrap();
    let file = format!("[[routes]]\nchannels = [\"theirs\"]\n{}", channel("theirs", &theirs));
    fs::write(project.join(".deskbell.toml"), file).unwrap();
    let run = |folder: &Path, arguments: &[&str]| {
        assert!(desk.command(arguments).current_dir(folder).status().unwrap().success());
    };
    let notify = |folder: &Path, text| run(folder, &["notify", text, "-l", "error"]);
    notify(&project, "before it is trusted");
    run(&project, &["trust"]);
    until("the project's channel", || {
        desk.run(&["channel", "list"]).1.contains("theirs").then_some(())
    });
    notify(&desk.folder(), "from elsewhere");
    notify(&project, "from the project");
    let bodies = theirs.wait_for(1).concat_bodies();
    assert!(bodies.contains("from the project"), "{bodies}");
    let bodies = ours.wait_for(2).concat_bodies();
    assert!(bodies.contains("before it is trusted") && bodies.contains("from elsewhere"));
    assert_eq!((ours.requests().len(), theirs.requests().len()), (2, 1));
}

#[test]
fn a_config_sh_beside_the_client_is_enough_row_111() {
    let far_end = FarEnd::start();
    let desk = Desk::new();
    let script = format!("export NTFY_URL=\"{}\"\nexport NTFY_TOPIC='from-file'\n", far_end.url());
    fs::write(desk.folder().join("config.sh"), script).unwrap();
    // The environment goes before the file.
    let mut client =
        desk.mcp_with_env(&["--profile", "mcp-push"], &[("NTFY_TOPIC", "from-environment")]);
    client.initialize();
    let result = client.call("notify.send", &json!({ "title": "t", "content": "c" }));
    assert!(result.to_string().contains("已向 1 个渠道发送通知"), "{result}");
    let body = far_end.wait_for(1).concat_bodies();
    assert!(body.contains("from-environment") && !body.contains("from-file"), "{body}");
}

/// All bodies as one text.
trait Bodies {
    fn concat_bodies(&self) -> String;
}

impl Bodies for Vec<crate::support::far_end::Request> {
    fn concat_bodies(&self) -> String {
        self.iter().map(|request| format!("{} {}\n", request.path, request.body)).collect()
    }
}
