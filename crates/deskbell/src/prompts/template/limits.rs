//! How much a template may do: every limit ends it with a sentence, whatever it is made of.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    io::{self, Write},
    time::Duration,
};

use liquid_core::{
    Error, Result, Runtime, Value, ValueCow, ValueView,
    model::{KString, KStringCow, KStringRef, ScalarCow},
    runtime::{Interrupt, InterruptRegister, PartialStore, Registers},
};
use tokio::time::Instant;

use crate::prompts::scan::{RANGE_LIMIT, range_message};

/// How long a template may take.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(2);

/// How many elements it may render, each turn of a loop counted as one.
const STEP_LIMIT: usize = 100_000;

/// The largest text or list that it may make, in bytes.
pub(in crate::prompts) const VALUE_LIMIT: usize = 256 * 1024;

/// How much its values come to, one after the other, in bytes.
const VALUES_LIMIT: usize = 16 * 1024 * 1024;

/// What a value of a list takes beside its text.
const ITEM_BYTES: usize = 16;

/// What was made so far.
#[derive(Default)]
struct Made {
    bytes: usize,
}

/// Counts a value that was made.
pub(super) fn charge(runtime: &dyn Runtime, value: &dyn ValueView) -> Result<()> {
    let size = size(value);
    if size > VALUE_LIMIT {
        return Err(Error::with_msg(too_large()));
    }
    let mut made = runtime.registers().get_mut::<Made>();
    made.bytes += size;
    if made.bytes > VALUES_LIMIT {
        return Err(Error::with_msg(format!("its values come to more than {VALUES_LIMIT} bytes")));
    }
    Ok(())
}

/// What is said of a value that is too large.
pub(super) fn too_large() -> String {
    format!("a value has more than {VALUE_LIMIT} bytes")
}

/// About what a value takes.
fn size(value: &dyn ValueView) -> usize {
    if let Some(array) = value.as_array() {
        return array.values().map(|item| size(item) + ITEM_BYTES).sum();
    }
    if let Some(object) = value.as_object() {
        return object.iter().map(|(key, item)| key.len() + size(item) + ITEM_BYTES).sum();
    }
    value.to_kstr().len()
}

/// The state of a rendering, that ends it when it did enough.
///
/// Elements ask for the registers after each that was rendered, and loops after each turn: there the steps are counted,
/// and there the interrupt of `{% break %}` ends whatever runs.
pub(super) struct Watched<'a> {
    inner: &'a dyn Runtime,
    range_ends: &'a [String],
    deadline: Instant,
    steps: Cell<usize>,
    reason: RefCell<Option<String>>,
}

impl<'a> Watched<'a> {
    pub(super) fn new(inner: &'a dyn Runtime, range_ends: &'a [String]) -> Self {
        Self {
            inner,
            range_ends,
            deadline: Instant::now() + TIME_LIMIT,
            steps: Cell::new(0),
            reason: RefCell::new(None),
        }
    }

    /// Why it was ended, if it was.
    pub(super) fn reason(&self) -> Option<String> {
        self.reason.borrow().clone()
    }

    fn end(&self, reason: String) {
        self.reason.borrow_mut().get_or_insert(reason);
    }

    fn is_over(&self) -> bool {
        if Instant::now() >= self.deadline {
            self.end(format!("it takes more than {} seconds", TIME_LIMIT.as_secs()));
        }
        self.reason.borrow().is_some()
    }

    /// Refuses the number at the end of a range that would be too long.
    fn check_range(&self, path: &[ScalarCow<'_>], value: &dyn ValueView) -> Result<()> {
        let name = path.iter().map(|part| part.to_kstr().into_owned().into_string());
        let name = name.collect::<Vec<_>>().join(".");
        if !self.range_ends.contains(&name) {
            return Ok(());
        }
        let number = value.as_scalar().and_then(|scalar| scalar.to_integer());
        if number.is_some_and(|number| number.unsigned_abs() > RANGE_LIMIT.unsigned_abs()) {
            self.end(format!("`{name}` ends a range, and {}", range_message()));
            return Err(Error::with_msg(range_message()));
        }
        Ok(())
    }
}

impl Runtime for Watched<'_> {
    fn partials(&self) -> &dyn PartialStore {
        self.inner.partials()
    }

    fn name(&self) -> Option<KStringRef<'_>> {
        self.inner.name()
    }

    fn roots(&self) -> BTreeSet<KStringCow<'_>> {
        self.inner.roots()
    }

    fn try_get(&self, path: &[ScalarCow<'_>]) -> Option<ValueCow<'_>> {
        if self.is_over() { None } else { self.inner.try_get(path) }
    }

    fn get(&self, path: &[ScalarCow<'_>]) -> Result<ValueCow<'_>> {
        if self.is_over() {
            return Err(Error::with_msg(self.reason().unwrap_or_default()));
        }
        let value = self.inner.get(path)?;
        self.check_range(path, value.as_view())?;
        Ok(value)
    }

    fn set_global(&self, name: KString, value: Value) -> Option<Value> {
        if let Err(error) = charge(self.inner, &value) {
            let told = error.to_string();
            let sentence = told.lines().next().unwrap_or_default();
            self.end(sentence.trim_start_matches("liquid:").trim().to_owned());
            return None;
        }
        self.inner.set_global(name, value)
    }

    fn set_index(&self, name: KString, value: Value) -> Option<Value> {
        self.inner.set_index(name, value)
    }

    fn get_index<'a>(&'a self, name: &str) -> Option<ValueCow<'a>> {
        self.inner.get_index(name)
    }

    fn registers(&self) -> &Registers {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > STEP_LIMIT {
            self.end(format!("it takes more than {STEP_LIMIT} steps"));
        }
        let registers = self.inner.registers();
        if self.is_over() {
            registers.get_mut::<InterruptRegister>().set(Interrupt::Break);
        }
        registers
    }
}

/// A text that grows to [`VALUE_LIMIT`] bytes.
pub(super) struct Bounded {
    bytes: Vec<u8>,
    is_full: bool,
}

impl Bounded {
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new(), is_full: false }
    }

    /// Why it takes no more, if it was asked to.
    pub(super) fn reason(&self) -> Option<String> {
        self.is_full.then(|| format!("its text has more than {VALUE_LIMIT} bytes"))
    }

    pub(super) fn into_text(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > VALUE_LIMIT {
            self.is_full = true;
            return Err(io::Error::other("the text is too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
