//! The channel kinds that there are.

mod aibotk;
mod apprise_api;
mod apprise_webhook;
mod aws_sns;
mod bark;
mod brevo;
mod chanify;
mod chronocat;
mod cloudevents;
mod console;
mod desktop;
mod dingtalk_app;
mod dingtalk_bot;
mod discord_bot;
mod discord_webhook;
mod exec;
mod feishu_app;
mod feishu_bot;
mod file;
mod goalert;
mod google_chat;
mod gotify;
mod home_assistant;
mod httpsms;
mod ifttt;
mod igot;
mod ilert;
mod incidentio;
mod jira_jsm;
mod join;
mod kodi;
mod kook;
mod lametric;
mod line;
mod mailgun;
mod mastodon;
mod matrix;
mod matrix_webhook;
mod mattermost_bot;
mod mattermost_webhook;
mod messagebird;
mod mqtt;
mod nextcloud_talk;
mod ntfy;
mod onebot;
mod onesignal;
mod openilink;
mod opsgenie;
mod pagerduty;
mod postmark;
mod prowl;
mod pushbullet;
mod pushdeer;
mod pushme;
mod pushover;
mod pushplus;
mod pushsafer;
mod qmsg;
mod resend;
mod revolt;
mod rocketchat_bot;
mod rocketchat_webhook;
mod sendgrid;
mod serverchan;
mod ses;
mod signal;
mod signl4;
mod simplepush;
mod slack_bot;
mod slack_webhook;
mod smtp;
mod splunk_oncall;
mod spugpush;
mod synology_chat;
mod syslog_local;
mod syslog_remote;
mod teams_workflows;
mod techulus;
mod telegram;
mod threema;
mod twilio_sms;
mod viber;
mod vonage;
mod web_push;
mod webex;
mod webhook_json;
mod webhook_template;
mod wecom_aibot;
mod wecom_app;
mod wecom_bot;
mod weplusbot;
mod whatsapp_cloud;
mod wpush;
mod wxpusher;
mod wxpusher_spt;
mod xizhi;
mod zulip;

use crate::{
    channel::{ChannelKind, ConfigError},
    url::{self, FromUrl},
};

/// All kinds, by name.
pub fn kinds() -> &'static [ChannelKind] {
    KINDS
}

/// The kind called `name`.
pub fn kind(name: &str) -> Option<&'static ChannelKind> {
    KINDS.iter().find(|kind| kind.about.name == name)
}

/// The channel that `address` stands for, such as `ntfy://topic`.
///
/// # Errors
/// Says which part of the address is wrong, and never repeats the rest.
pub fn from_url(address: &str) -> Result<FromUrl, ConfigError> {
    from_url_with(address, Vec::new())
}

/// The channel that `address` stands for, with further parameters that go before those in it, and with `user`,
/// `password`, `host` and `port` where they have these names.
///
/// # Errors
/// Says which part of the address is wrong, and never repeats the rest.
pub fn from_url_with(
    address: &str,
    settings: Vec<(String, String)>,
) -> Result<FromUrl, ConfigError> {
    url::read(KINDS, address, settings)
}

const KINDS: &[ChannelKind] = &[
    aibotk::KIND,
    apprise_api::KIND,
    apprise_webhook::KIND,
    aws_sns::KIND,
    bark::KIND,
    brevo::KIND,
    chanify::KIND,
    chronocat::KIND,
    cloudevents::KIND,
    console::KIND,
    desktop::KIND,
    dingtalk_app::KIND,
    dingtalk_bot::KIND,
    discord_bot::KIND,
    discord_webhook::KIND,
    exec::KIND,
    feishu_app::KIND,
    feishu_bot::KIND,
    file::KIND,
    goalert::KIND,
    google_chat::KIND,
    gotify::KIND,
    home_assistant::KIND,
    httpsms::KIND,
    ifttt::KIND,
    igot::KIND,
    ilert::KIND,
    incidentio::KIND,
    jira_jsm::KIND,
    join::KIND,
    kodi::KIND,
    kook::KIND,
    lametric::KIND,
    line::KIND,
    mailgun::KIND,
    mastodon::KIND,
    matrix::KIND,
    matrix_webhook::KIND,
    mattermost_bot::KIND,
    mattermost_webhook::KIND,
    messagebird::KIND,
    mqtt::KIND,
    nextcloud_talk::KIND,
    ntfy::KIND,
    onebot::KIND,
    onesignal::KIND,
    openilink::KIND,
    opsgenie::KIND,
    pagerduty::KIND,
    postmark::KIND,
    prowl::KIND,
    pushbullet::KIND,
    pushdeer::KIND,
    pushme::KIND,
    pushover::KIND,
    pushplus::KIND,
    pushsafer::KIND,
    qmsg::KIND,
    resend::KIND,
    revolt::KIND,
    rocketchat_bot::KIND,
    rocketchat_webhook::KIND,
    sendgrid::KIND,
    serverchan::KIND,
    ses::KIND,
    signal::KIND,
    signl4::KIND,
    simplepush::KIND,
    slack_bot::KIND,
    slack_webhook::KIND,
    smtp::KIND,
    splunk_oncall::KIND,
    spugpush::KIND,
    synology_chat::KIND,
    syslog_local::KIND,
    syslog_remote::KIND,
    teams_workflows::KIND,
    techulus::KIND,
    telegram::KIND,
    threema::KIND,
    twilio_sms::KIND,
    viber::KIND,
    vonage::KIND,
    web_push::KIND,
    webex::KIND,
    webhook_json::KIND,
    webhook_template::KIND,
    wecom_aibot::KIND,
    wecom_app::KIND,
    wecom_bot::KIND,
    weplusbot::KIND,
    whatsapp_cloud::KIND,
    wpush::KIND,
    wxpusher::KIND,
    wxpusher_spt::KIND,
    xizhi::KIND,
    zulip::KIND,
];
