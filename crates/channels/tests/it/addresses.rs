//! What the addresses of Apprise stand for, compared with what Apprise 2.2.0 sends for them.

use deskbell_channels::from_url;

#[track_caller]
fn check(address: &str, kind: &str, options: &str) {
    let found = from_url(address).unwrap();
    let options: toml::Table = toml::from_str(options).unwrap();
    assert_eq!((found.kind, found.options), (kind, options), "{address}");
}

#[track_caller]
fn refuses(address: &str, why: &str) {
    assert_eq!(from_url(address).unwrap_err().to_string(), why);
}

#[test]
fn pushover_tells_devices_or_groups() {
    check(
        "pover://uQiR@azGD/phone/watch?priority=emergency&sound=siren&interval=60&expire=600",
        "pushover",
        "token = 'azGD'\nuser = 'uQiR'\ndevices = ['phone', 'watch']\npriority = 2\nretry = 60\nexpire = 600\n\
         sound = 'siren'",
    );
    check(
        "pover://uQiR@azGD/#gzne?priority=-1",
        "pushover",
        "token = 'azGD'\nuser = ['gzne']\npriority = -1",
    );
    refuses("pover://azGD", "the `pover` address names no user key before the `@`");
    refuses(
        "pover://u@a?key=00ff",
        "the `pover` address has a `key` to encrypt with, which channels do not do",
    );
}

#[test]
fn on_call_services_get_a_key_and_what_is_affected() {
    check(
        "pagerduty://r0ut3@rest/shop/checkout?region=eu&class=deploy&action=map&+team=a",
        "pagerduty",
        "key = 'r0ut3'\nregion = 'eu'\nsource = 'shop'\ncomponent = 'checkout'\nclass = 'deploy'\n\
         details = { team = 'a' }",
    );
    refuses("pagerduty://rest", "the `pagerduty` address names no integration key before the `@`");
    check(
        "opsgenie://ada@k-1/#team/bob?region=eu&priority=high&tags=a,b&+d=v",
        "opsgenie",
        "key = 'k-1'\nuser = 'ada'\nresponders = ['#team', '@bob']\npriority = 'P2'\ntags = ['a', 'b']\n\
         details = { d = 'v' }\napi = 'https://api.eu.opsgenie.com'",
    );
    refuses(
        "opsgenie://k?region=mars",
        "the `opsgenie` address has a `region` other than `us` and `eu`",
    );
    check("jira://k-1?region=eu&alias=x", "jira_jsm", "key = 'k-1'\nalias = 'x'");
}

#[test]
fn ifttt_takes_its_own_addresses_too() {
    let options = "key = 'KEY'\nevent = ['one', 'two']";
    check("ifttt://KEY@one/two", "ifttt", options);
    check("ifttt://KEY/one?to=two", "ifttt", options);
    check("https://maker.ifttt.com/use/KEY/one/two", "ifttt", options);
    check(
        "ifttt://KEY@one?+Value3=shop&-value1=",
        "ifttt",
        "key = 'KEY'\nevent = 'one'\nvalues = { value1 = '', value3 = 'shop' }",
    );
}

#[test]
fn apprise_servers_are_named_with_their_key() {
    check(
        "apprises://ada:pw@h.example.com:8443/sub/KEY?tags=a,b&method=json&+X-Team=shop",
        "apprise_api",
        "server = 'https://ada:pw@h.example.com:8443/sub'\nkey = 'KEY'\ntags = ['a', 'b']\n\
         headers = { X-Team = 'shop' }",
    );
    check(
        "http://localhost:8000/notify/KEY",
        "apprise_api",
        "server = 'http://localhost:8000'\nkey = 'KEY'",
    );
    refuses("apprise://localhost", "the `apprise` address names no configuration key");
}
