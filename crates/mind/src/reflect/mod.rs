//! The `reflect` tool: finds promises, wishes and settled commitments in a statement, without a language model.
//!
//! - Only the owner's and the agent's own words bind: a statement, feedback, what the agent says of itself. Any other kind
//!   (`ambient`, `time_passed`, unknown) is logged and related only, because it may be a stranger's text.
//! - `sentences` leaves out quotations; `openers` and `commitment` find promises and requests; `due_time` finds their
//!   time; `resolution` finds what is settled, `feedback` what is wished for. All of it is pure and deterministic.
//! - Text that reads like an order to the agent is quarantined: it is logged for the owner, and nothing is derived from it.
//! - A wish becomes a proposal for the standing instructions, never a change.
//! - One reflection is one transaction: the log entry and everything derived from it.

mod commitment;
mod due_time;
mod feedback;
mod openers;
mod outcome;
mod resolution;
mod sentences;

use std::collections::BTreeSet;

use embody_store::commitments::{Commitment, CommitmentStatus, NewCommitment};
use embody_store::instructions::Instructions;
use embody_store::mind_log::{NewLogEntry, NewReflection};
use embody_store::proposals::NewProposal;
use embody_text::fold::fold;
use schemars::JsonSchema;
use serde::Deserialize;

use self::feedback::FeedbackContext;
use self::openers::Party;
pub use self::outcome::{Noted, Reflection, Related};
use self::resolution::ResolutionKind;
use self::sentences::{Sentence, read};
use crate::error::{Error, Result};
use crate::{Caller, Mind, Trust, ZonedNow, proposals, quarantine};

pub(crate) use self::sentences::keywords;

const MAX_NOTED: usize = 8;
const MAX_OPEN: u32 = 500;
const MAX_OBSERVATION_BYTES: usize = 64 * 1024;
const MAX_LOGGED_CHARS: usize = 8000;
const MAX_SENTENCE_CHARS: usize = 500;

/// Something to reflect upon.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reflect {
    /// What was said or happened, in the words of whoever said it.
    pub observation: String,
    /// `user_statement` (if left out), `agent_statement` for what you say yourself, `feedback`, `time_passed` or `ambient`.
    #[serde(default)]
    pub kind: Option<String>,
}

impl Mind {
    /// Reflects upon something: logs it, keeps what it promises, settles or asks for, and says what is known about it.
    pub async fn reflect(&self, caller: &Caller, args: Reflect, now: &ZonedNow) -> Result<Reflection> {
        check(&args.observation)?;
        let (store, scope) = (&self.store, &caller.scope);
        let kind =
            args.kind.as_deref().map(str::trim).filter(|kind| !kind.is_empty()).unwrap_or("user_statement");
        // The kind is returned with the text, so it is checked too.
        let texts = [Some(args.observation.clone()), args.kind.clone()].into_iter().flatten().collect();
        let quarantined = caller.trust != Trust::Owner && quarantine::any_gives_orders(texts).await;
        if quarantined || !is_owners(kind) {
            // The model has these words from elsewhere.
            self.record_untrusted_read(caller, &format!("reflect:{kind}"), now).await?;
        }
        let open = store.commitments().list(scope, CommitmentStatus::Open, MAX_OPEN).await?;
        let findings = match Speaker::of(kind).filter(|_| !quarantined) {
            None => Findings::default(),
            Some(speaker) => {
                let instructions = store.instructions().get(scope).await?;
                find_all(&args.observation, speaker, &open, &instructions, now)
            }
        };
        let entry = NewLogEntry {
            at: now.micros(),
            session: caller.session.clone(),
            kind: kind.to_owned(),
            writer: caller.writer.clone(),
            trust: self.trust_of(caller, now).await?.to_owned(),
            held: quarantined,
            text: truncate(&args.observation, MAX_LOGGED_CHARS),
        };
        let Findings { commitments, settled, proposals } = findings;
        let new = NewReflection { entry, commitments, settled, proposals };
        let reflected = store.mind_log().append(scope, new).await?;
        let about = outcome::RelatedQuery {
            observation: &args.observation,
            time_passed: kind == "time_passed",
            open: &open,
        };
        let related = outcome::find_related(store, scope, about, &reflected, now).await?;
        self.note_trust(caller, related.iter().map(Related::trust), now).await?;
        let noted = if quarantined { vec![Noted::Held] } else { outcome::noted(reflected, now) };
        Ok(Reflection { about: outcome::ABOUT, noted, related })
    }
}

fn check(observation: &str) -> Result<()> {
    let problem = match observation.len() {
        _ if observation.trim().is_empty() => "`observation` is empty".to_owned(),
        length if length > MAX_OBSERVATION_BYTES => {
            format!("`observation` has `{length}` bytes; {MAX_OBSERVATION_BYTES} are allowed")
        }
        _ => return Ok(()),
    };
    Err(Error::Arguments { tool: "reflect", problem })
}

/// Whether a kind says that these are the owner's own words.
fn is_owners(kind: &str) -> bool {
    matches!(Speaker::of(kind), Some(Speaker::User(_)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    User(FeedbackContext),
    Agent,
}

impl Speaker {
    /// By the kind of the observation; `None` for kinds that bind nobody.
    fn of(kind: &str) -> Option<Self> {
        match kind {
            "user_statement" => Some(Self::User(FeedbackContext::Conversation)),
            "feedback" => Some(Self::User(FeedbackContext::Feedback)),
            "agent_statement" => Some(Self::Agent),
            _ => None,
        }
    }

    fn name(self, who: Party) -> &'static str {
        match (who, self) {
            (Party::Both, _) => "both",
            (Party::Speaker, Self::User(_)) | (Party::Listener, Self::Agent) => "user",
            (Party::Listener, Self::User(_)) | (Party::Speaker, Self::Agent) => "agent",
        }
    }
}

#[derive(Debug, Default)]
struct Findings {
    commitments: Vec<NewCommitment>,
    settled: Vec<(String, CommitmentStatus)>,
    proposals: Vec<NewProposal>,
}

fn find_all(
    text: &str,
    speaker: Speaker,
    open: &[Commitment],
    instructions: &Instructions,
    now: &ZonedNow,
) -> Findings {
    let mut findings = Findings::default();
    let mut lines = Vec::new();
    let matters: Vec<BTreeSet<String>> = open.iter().map(|open| keywords(&open.said.text)).collect();
    for sentence in read(text) {
        let settled = resolution::find(&sentence).into_iter().find_map(|closing| {
            let place = resolution::match_open(&closing, &matters)?;
            open.get(place).map(|there| (closing, there))
        });
        if let Some((closing, there)) = settled {
            let status = match closing.kind {
                ResolutionKind::Done => CommitmentStatus::Done,
                ResolutionKind::Dropped => CommitmentStatus::Dropped,
            };
            findings.settled.push((there.id.clone(), status));
            continue;
        }
        if let Speaker::User(setting) = speaker
            && let Some(line) = feedback::find(&sentence, setting)
        {
            lines.push((line, short(sentence.text)));
            continue;
        }
        findings.commitments.extend(commitments(&sentence, speaker, now));
    }
    findings.commitments.truncate(MAX_NOTED);
    findings.proposals.extend(proposals::draft(lines, instructions));
    findings
}

fn commitments(sentence: &Sentence<'_>, speaker: Speaker, now: &ZonedNow) -> Vec<NewCommitment> {
    let said = commitment::find(sentence, &now.local());
    let kept = said.into_iter().map(|said| NewCommitment {
        who: speaker.name(said.who).to_owned(),
        words: comparison_key(&said.text),
        text: short(&said.text),
        due_at: said.due.map(|due| due.as_microsecond()),
        sentence: short(sentence.text),
    });
    kept.collect()
}

/// What a commitment is compared by: its words in any order, or as it stands if none of them means anything.
fn comparison_key(text: &str) -> String {
    let words: Vec<String> = keywords(text).into_iter().collect();
    short(&if words.is_empty() { fold(text) } else { words.join(" ") })
}

fn short(text: &str) -> String {
    truncate(text, MAX_SENTENCE_CHARS)
}

/// The first so many characters; the last of them says that there was more.
pub(crate) fn truncate(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    text.chars().take(characters.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests;
