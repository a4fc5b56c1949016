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

#[test]
fn home_assistant_is_named_with_a_long_lived_token() {
    let token = "eyJh.eyJp.c2ln";
    check(
        &format!("hassio://ha.local/{token}/mobile_app_x/notify.family?nid=bell"),
        "home_assistant",
        "server = 'http://ha.local:8123'\ntoken = 'eyJh.eyJp.c2ln'\n\
         service = ['mobile_app_x', 'notify.family']\nnotification_id = 'bell'",
    );
    check(
        &format!("hassios://ha.example.com/mobile_app_x/{token}?prefix=/ha"),
        "home_assistant",
        "server = 'https://ha.example.com/ha'\ntoken = 'eyJh.eyJp.c2ln'\nservice = 'mobile_app_x'",
    );
    refuses(
        "hassio://ha.local/one/two",
        "the `hassio` address has no long-lived token in its path; give it as `token`",
    );
}

#[test]
fn chats_are_named_with_their_tokens() {
    check("line://abc/def+token=/U1?to=C2", "line", "token = 'abc/def+token='\nto = ['U1', 'C2']");
    check(
        "signals://u:p@signal.example.com/+15551/@dGVhbQ==/@group.x/+15552",
        "signal",
        "server = 'https://u:p@signal.example.com/'\nfrom = '+15551'\n\
         to = ['group.dGVhbQ==', 'group.x', '+15552']",
    );
    check(
        "signal://h:8080/+15551",
        "signal",
        "server = 'http://h:8080/'\nfrom = '+15551'\nto = '+15551'",
    );
    check(
        "whatsapp://done:TOKEN@1065/1555?lang=de&:2=type&:1=body",
        "whatsapp_cloud",
        "token = 'TOKEN'\nphone_number_id = '1065'\nto = '1555'\ntemplate = 'done'\nlanguage = 'de'\n\
         parameters = ['text', 'level']",
    );
    check(
        "nctalks://bell:pw@cloud.example.com/r1?silent=yes&url_prefix=/nc",
        "nextcloud_talk",
        "server = 'https://cloud.example.com/nc'\nroom = 'r1'\nuser = 'bell'\npassword = 'pw'\nsilent = true",
    );
    check(
        "simplepush://tok/a/b?priority=high&sptag=ci",
        "simplepush",
        "token = 'tok'\ntopic = ['a', 'b']\npriority = 4\ntag = 'ci'",
    );
    refuses(
        "simplepush://pw@tok",
        "the `simplepush` address has a password to encrypt with, which channels do not do",
    );
}

#[test]
fn bots_and_webhooks_are_told_apart() {
    check("webex://HOOK", "webex", "webhook = 'HOOK'");
    check("https://webexapis.com/v1/webhooks/incoming/HOOK", "webex", "webhook = 'HOOK'");
    check("wxteams://TOKEN/room", "webex", "token = 'TOKEN'\nto = 'room'");
    check("kook://KEY?mode=webhook", "kook", "webhook = 'KEY'");
    check("https://www.kookapp.cn/api/v3/incoming/KEY", "kook", "webhook = 'KEY'");
    let bot = "token = '1/MTA=/2nK=='\nto = ['4368', '@2418']";
    check("kook://1%2FMTA=%2F2nK==/4368/@2418", "kook", bot);
    check("kook://1/MTA=/2nK==/4368?to=@2418", "kook", bot);
}

#[test]
fn smaller_services_are_named_as_apprise_names_them() {
    check(
        "ilert://KEY?priority=low&dedup=shop&route=web&action=map&+team=a",
        "ilert",
        "key = 'KEY'\npriority = 'low'\nalert_key = 'shop'\nrouting_key = 'web'\nlabels = { team = 'a' }",
    );
    let incident = "source = '01GW'\ntoken = 'tok'";
    check("incidentio://01GW/tok", "incidentio", incident);
    check("https://api.incident.io/v2/alert_events/http/01GW?token=tok", "incidentio", incident);
    let key = "9b2d7c1e-3f4a-4c5d-8e6f-0a1b2c3d4e5f";
    check(
        &format!("goalert://localhost:8081/sub/{key}?dedup=shop"),
        "goalert",
        &format!("server = 'http://localhost:8081/sub'\nkey = '{key}'\ndedup = 'shop'"),
    );
    let splunk = "key = 'KEY'\nrouting_key = 'platform'";
    check("splunk://platform@KEY", "splunk_oncall", splunk);
    check(
        "https://alert.victorops.com/integrations/generic/20131114/alert/KEY/platform",
        "splunk_oncall",
        splunk,
    );
    check(
        "signl4://SECRET?filtering=yes&dedup=shop",
        "signl4",
        "secret = 'SECRET'\nexternal_id = 'shop'\nfiltering = true",
    );
    check(
        "onesignal://tmpl:app@key/#all/@ada?lang=de",
        "onesignal",
        "app_id = 'app'\nkey = 'key'\nto = ['#all', '@ada']\ntemplate = 'tmpl'\nlanguage = 'de'",
    );
    check(
        "lametrics://dev:KEY@clock.local?cycles=2&icon_type=alert",
        "lametric",
        "server = 'https://clock.local:4343'\nkey = 'KEY'\nicon_type = 'alert'\ncycles = 2",
    );
    check(
        "lametric://TOKEN@com.lametric.941c/1",
        "lametric",
        "app = 'https://developer.lametric.com/api/v1/dev/widget/update/com.lametric.941c/1'\nkey = 'TOKEN'",
    );
    check(
        "xbmc://u:p@tv.local?duration=5",
        "kodi",
        "server = 'http://u:p@tv.local:8080/'\nduration = 5",
    );
    check(
        "threema://*DESKBEL@pw/ECHOECHO",
        "threema",
        "from = '*DESKBEL'\nsecret = 'pw'\nto = 'ECHOECHO'",
    );
    check(
        "httpsms://KEY@15551?from=15550&to=15552",
        "httpsms",
        "key = 'KEY'\nfrom = '+15550'\nto = ['+15551', '+15552']",
    );
    check(
        "join://KEY/all?priority=high",
        "join",
        "key = 'KEY'\ndevice = 'group.all'\npriority = 1",
    );
    check(
        "psafer://KEY/52?priority=2&sound=8",
        "pushsafer",
        "key = 'KEY'\ndevice = '52'\npriority = 2\nsound = 8",
    );
    check("push://KEY", "techulus", "key = 'KEY'");
}
