//! How addresses are read, and what is said of those that are wrong.

use super::*;
use crate::{catalog::from_url, manner::Overflow};

#[track_caller]
fn check(address: &str, kind: &str, options: &str) {
    let found = from_url(address).unwrap();
    let options: toml::Table = toml::from_str(options).unwrap();
    assert_eq!((found.kind, found.options), (kind, options));
}

#[test]
fn the_services_own_addresses_are_known_in_upper_case_too() {
    check("HTTPS://NTFY.sh/Builds?to=", "ntfy", "topic = 'Builds'");
    check("ntfy://builds?to=", "ntfy", "topic = 'builds'");
    check("Https://ntfy.sh/builds?to=alerts", "ntfy", "topic = ['builds', 'alerts']");
    let found = from_url("HTTPS://Discord.com/api/webhooks/1/aBc").unwrap();
    assert_eq!(found.kind, "discord_webhook");
    assert!(found.options["url"].as_str().unwrap().ends_with("/1/aBc"), "{:?}", found.options);
}

#[test]
fn an_address_says_how_any_channel_is_to_tell() {
    let manner = |address| from_url(address).unwrap().manner;
    let truncated = manner("ntfy://t?format=text&overflow=truncate");
    assert_eq!(truncated.format, Some(Format::Text));
    assert_eq!(truncated.overflow, Overflow::Truncate);
    assert_eq!(manner("ntfy://t?format=html").format, Some(Format::Markdown));
    assert_eq!(manner("ntfy://t"), Manner::default());
    assert_eq!(manner("ntfy://t?format="), Manner::default());
}

#[test]
fn what_no_channel_does_is_told() {
    let passed_over = |address| from_url(address).unwrap().passed_over;
    assert_eq!(passed_over("ntfy://t?verify=no&retry=3&wait=2"), ["verify", "retry", "wait"]);
    assert!(passed_over("ntfy://t?verify=yes&retry=0&emojis=no&image=yes&cto=").is_empty());
}

#[test]
fn a_login_may_stand_behind_the_question_mark() {
    check(
        "bark://push.example.com/key1?user=me&pass=secret-1&port=81",
        "bark",
        "key = 'key1'\nserver = 'http://push.example.com:81'\nuser = 'me'\npassword = 'secret-1'",
    );
    check(
        "bark://secret-1@push.example.com/key1?user=me",
        "bark",
        "key = 'key1'\nserver = 'http://push.example.com'\nuser = 'me'\npassword = 'secret-1'",
    );
}

#[test]
fn addresses_are_read_as_apprise_reads_them() {
    check("ntfy://builds", "ntfy", "topic = 'builds'");
    check(
        "ntfys://me:p%40ss@push.example.com:8443/builds",
        "ntfy",
        "topic = 'builds'\nserver = 'https://push.example.com:8443'\nuser = 'me'\npassword = 'p@ss'",
    );
    check(
        "ntfys://tk_abc@push.example.com/builds?format=markdown",
        "ntfy",
        "topic = 'builds'\nserver = 'https://push.example.com'\ntoken = 'tk_abc'",
    );
    check(
        "tgram://110201543:AAHdq/-1001/?topic=7&silent=yes",
        "telegram",
        "token = '110201543:AAHdq'\nchat_id = '-1001'\ntopic = 7\nsilent = true",
    );
    check("dingtalk://SECx@t0ken/", "dingtalk_bot", "token = 't0ken'\nsecret = 'SECx'");
    check(
        "jsons://u:p@hooks.example.com/a/b/?-k=v&+X-Key=s&:message=text&:team=shop&Method=put",
        "apprise_webhook",
        "url = 'https://u:p@hooks.example.com/a/b/?k=v'\nheaders = { X-Key = 's' }\nmethod = 'PUT'\n\
         names = { message = 'text' }\nfields = { team = 'shop' }",
    );
    check(
        "mqtts://bell:pw@broker:8884/a/b?qos=2&retain=yes",
        "mqtt",
        "host = 'broker'\nport = 8884\ntls = true\ntopic = 'a/b'\nuser = 'bell'\npassword = 'pw'\nqos = 2\nretain = true",
    );
    check(
        "gotifys://push.example.com/sub/AKx",
        "gotify",
        "server = 'https://push.example.com/sub'\ntoken = 'AKx'",
    );
}

#[test]
fn mail_addresses_name_provider_sender_and_readers() {
    check(
        "mailto://ada:pw@gmail.com",
        "smtp",
        "host = 'smtp.gmail.com'\nsecurity = 'starttls'\nuser = 'ada@gmail.com'\npassword = 'pw'\n\
         from = 'ada@gmail.com'\nto = ['ada@gmail.com']",
    );
    check(
        "mailtos://bell:pw@example.com:465/x@example.com/y@example.com?smtp=mail.example.com&mode=ssl&name=Bell",
        "smtp",
        "host = 'mail.example.com'\nport = 465\nsecurity = 'tls'\nuser = 'bell'\npassword = 'pw'\n\
         from = 'Bell <bell@example.com>'\nto = ['x@example.com', 'y@example.com']",
    );
    check(
        "mailto://localhost:2525?from=bell@example.com&to=x@example.com,y@example.com",
        "smtp",
        "host = 'localhost'\nport = 2525\nsecurity = 'none'\nfrom = 'bell@example.com'\n\
         to = ['x@example.com', 'y@example.com']",
    );
}

#[test]
fn refusals_say_which_part_is_wrong_and_repeat_no_other_row_116() {
    #[track_caller]
    fn check(address: &str, expected: &str) {
        assert_eq!(from_url(address).unwrap_err().to_string(), expected);
    }
    check("no address", "the address has no scheme, such as `ntfy://`");
    check("ntfyy://x", "no kind of channel takes such an address; did you mean `ntfy://`?");
    check("zzz://secret", "no kind of channel takes such an address");
    check("ntfy://t?secret", "the `ntfy` address has a parameter without a value");
    check("tgram://1:secret", "the `tgram` address names no chat");
    check("feishu://u@secret", "the `feishu` address has a login, which means nothing there");
    check("gotifys://h/AKx?to=secret", "the `gotifys` address has the unknown parameter `to`");
    for (scheme, address) in [("mqtt", "h:secret/t"), ("gotify", "h:99999/AKx"), ("json", "h:0/a")]
    {
        check(
            &format!("{scheme}://{address}"),
            &format!("the `{scheme}` address has a port that is no number from 1 to 65535"),
        );
    }
    for (scheme, address) in [("mqtt", "[::1/t"), ("json", "[secret]/a"), ("gotify", "a]/AKx")] {
        check(
            &format!("{scheme}://{address}"),
            &format!("the `{scheme}` address has brackets around what is no address of IPv6"),
        );
    }
    check("ntfy://t?colour=secret", "the `ntfy` address has the unknown parameter `colour`");
    check("mqtt:///t", "the `mqtt` address names no host");
    check(
        "ntfy://t?overflow=secret",
        "the `ntfy` address has a wrong `overflow`; expected split, truncate or upstream",
    );
}
