//! `{% notify "…", level: "warn", context: "safety" %}`: tells the user something when it is rendered, and leaves no
//! text.

use std::io::Write;

use deskbell_core::{Context, Invalid, Level, event::Content};
use liquid_core::{
    Error, Language, ParseTag, Renderable, Result, Runtime, TagReflection, TagTokenIter,
    ValueView as _, parser::FilterChain,
};

use crate::prompts::Notice;

/// How many notices one rendering may give.
const NOTICE_LIMIT: usize = 50;

/// What the place of the tag is called in an error.
pub(super) const PLACE: &str = "place";

/// What was notified of, in order.
#[derive(Debug, Default)]
pub(in crate::prompts) struct Notices(pub(in crate::prompts) Vec<Notice>);

/// The tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct NotifyTag;

impl TagReflection for NotifyTag {
    fn tag(&self) -> &'static str {
        "notify"
    }

    fn description(&self) -> &'static str {
        "Tells the user something when it is rendered."
    }
}

impl ParseTag for NotifyTag {
    fn parse(
        &self,
        mut tokens: TagTokenIter<'_>,
        options: &Language,
    ) -> Result<Box<dyn Renderable>> {
        let place = place(&mut tokens);
        let message = tokens.expect_next("expected a message in quotes, or a variable")?;
        let message = message.expect_filter_chain(options).into_result()?;
        let mut tag =
            Notify { place, message, level: None, context: None, title: None, link: None };
        while let Some(token) = tokens.next() {
            let slot = match token.as_str() {
                "," => continue,
                "level" => &mut tag.level,
                "context" => &mut tag.context,
                "title" => &mut tag.title,
                "link" => &mut tag.link,
                _ => {
                    let message = "expected `level`, `context`, `title` or `link`";
                    return Err(token.raise_custom_error(message));
                }
            };
            let colon = tokens.expect_next("expected `:`")?.expect_str(":");
            colon.into_result_custom_msg("expected `:`")?;
            let value = tokens.expect_next("expected a text in quotes, or a variable")?;
            *slot = Some(value.expect_filter_chain(options).into_result()?);
        }
        Ok(Box::new(tag))
    }

    fn reflection(&self) -> &dyn TagReflection {
        self
    }
}

/// Where the tag stands, as `LINE:COLUMN`. Only errors know their place.
fn place(tokens: &mut TagTokenIter<'_>) -> String {
    let told = tokens.raise_error("").to_string();
    let place = told.lines().find_map(|line| line.split_once("-->")).map(|(_, place)| place.trim());
    place.unwrap_or("1:1").to_owned()
}

#[derive(Debug)]
struct Notify {
    place: String,
    message: FilterChain,
    level: Option<FilterChain>,
    context: Option<FilterChain>,
    title: Option<FilterChain>,
    link: Option<FilterChain>,
}

impl Notify {
    fn wrong(&self, message: impl Into<String>) -> Error {
        Error::with_msg(message.into()).context(PLACE, self.place.clone())
    }

    fn refused(&self, invalid: &Invalid) -> Error {
        self.wrong(format!("notify: {invalid}"))
    }

    fn text(chain: Option<&FilterChain>, runtime: &dyn Runtime) -> Result<Option<String>> {
        let Some(chain) = chain else { return Ok(None) };
        let value = chain.evaluate(runtime)?;
        Ok((!value.is_nil()).then(|| value.to_kstr().into_owned().into_string()))
    }
}

impl Renderable for Notify {
    fn render_to(&self, _: &mut dyn Write, runtime: &dyn Runtime) -> Result<()> {
        let message = Self::text(Some(&self.message), runtime)?.unwrap_or_default();
        if message.trim().is_empty() {
            return Err(self.wrong("notify: the message is empty"));
        }
        let level = Self::text(self.level.as_ref(), runtime)?;
        let level: Option<Level> =
            level.map(|it| it.parse()).transpose().map_err(|invalid| self.refused(&invalid))?;
        let context = Self::text(self.context.as_ref(), runtime)?;
        let context: Option<Context> =
            context.map(|it| it.parse()).transpose().map_err(|invalid| self.refused(&invalid))?;
        let title = Self::text(self.title.as_ref(), runtime)?;
        let link = Self::text(self.link.as_ref(), runtime)?;
        // What is refused when it is reported would be lost without a word to who asked for the prompt.
        let content = Content { title, text: message, link, ..Content::default() };
        content.check("message").map_err(|invalid| self.refused(&invalid))?;
        let mut notices = runtime.registers().get_mut::<Notices>();
        if notices.0.len() >= NOTICE_LIMIT {
            return Err(
                self.wrong(format!("one rendering notifies more than {NOTICE_LIMIT} times"))
            );
        }
        notices.0.push(Notice {
            message: content.text,
            level: level.unwrap_or_default(),
            context: context.unwrap_or_default(),
            title: content.title,
            link: content.link,
        });
        Ok(())
    }
}
