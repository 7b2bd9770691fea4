//! What was said, and what follows from it: promises, wishes, and that something is settled. Without a language model.
//!
//! - Only the owner's and the agent's own words bind: a statement, feedback, what the agent says of itself. Anything else
//!   (`ambient`, `time_passed`, kinds nobody knows) is logged and related, and nothing is read out of it, for it may be a
//!   stranger's text.
//! - `sentences` leaves out quotations; `opening` and `commitment` find promises and requests; `when` finds their time;
//!   `closing` finds what is settled, `feedback` what is wished for. All of it is pure and deterministic.
//! - What reads like an order to the agent is held back (`held`): logged for the owner, and nothing is read out of it.
//! - A wish becomes a proposal for the standing instructions and never more than that.
//! - Everything of one reflection is written in one transaction: the entry of the log and what was read out of it.

mod closing;
mod commitment;
mod feedback;
mod held;
mod lexicon;
mod matter;
mod openers;
mod opening;
mod outcome;
mod proposal;
mod related;
mod sentences;
mod when;

use std::collections::BTreeSet;

use embody_store::{
    Commitment, CommitmentStatus, Instructions, NewCommitment, NewLogEntry, NewProposal, NewReflection,
};
use schemars::JsonSchema;
use serde::Deserialize;

use self::closing::Settled;
use self::feedback::Setting;
use self::openers::Who;
pub use self::outcome::{Noted, Reflection};
pub use self::proposal::ProposalDecision;
pub use self::related::Related;
use self::sentences::{Sentence, sentences};
use crate::error::{Error, Result};
use crate::{Caller, Mind, Moment};

pub(crate) use self::matter::matter;
pub(crate) use self::sentences::fold;

/// The most commitments and the most wishes of one reflection.
const MOST_NOTED: usize = 8;
/// The most open commitments that a closing is compared with.
const MOST_OPEN: u32 = 500;
/// The longest observation, in bytes.
const LONGEST: usize = 64 * 1024;
/// The most characters of an observation that the log keeps.
const LOGGED: usize = 8000;
/// The longest sentence that is kept with what came of it, in characters.
const SENTENCE: usize = 500;

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
    pub async fn reflect(&self, caller: &Caller, args: Reflect, now: &Moment) -> Result<Reflection> {
        check(&args.observation)?;
        let (store, scope) = (&self.store, &caller.scope);
        let kind =
            args.kind.as_deref().map(str::trim).filter(|kind| !kind.is_empty()).unwrap_or("user_statement");
        let held = held::is_held(caller, &args).await;
        if held || !is_owners(kind) {
            // The model has these words from elsewhere.
            self.record_untrusted_read(caller, &format!("reflect:{kind}"), now).await?;
        }
        let open = store.commitments(scope, CommitmentStatus::Open, MOST_OPEN).await?;
        let read = match Speaker::of(kind).filter(|_| !held) {
            None => Read::default(),
            Some(speaker) => {
                let instructions = store.instructions(scope).await?;
                read(&args.observation, speaker, &open, &instructions, now)
            }
        };
        let entry = NewLogEntry {
            at: now.micros(),
            session: caller.session.clone(),
            kind: kind.to_owned(),
            writer: caller.writer.clone(),
            trust: self.trust_of(caller, now).await?.to_owned(),
            held,
            text: cut(&args.observation, LOGGED),
        };
        let Read { commitments, settled, proposals } = read;
        let new = NewReflection { entry, commitments, settled, proposals };
        let reflected = store.add_reflection(scope, new).await?;
        let about = related::About {
            observation: &args.observation,
            time_passed: kind == "time_passed",
            open: &open,
        };
        let related = related::find(store, scope, about, &reflected, now).await?;
        self.note_trust(caller, related.iter().map(Related::trust), now).await?;
        let noted = if held { vec![Noted::Held] } else { outcome::noted(reflected, now) };
        Ok(Reflection { about: outcome::ABOUT, noted, related })
    }
}

fn check(observation: &str) -> Result<()> {
    let problem = match observation.len() {
        _ if observation.trim().is_empty() => "`observation` is empty".to_owned(),
        length if length > LONGEST => format!("`observation` has `{length}` bytes; {LONGEST} are allowed"),
        _ => return Ok(()),
    };
    Err(Error::Arguments { tool: "reflect", problem })
}

/// Whether a kind says that these are the owner's own words.
fn is_owners(kind: &str) -> bool {
    matches!(Speaker::of(kind), Some(Speaker::User(_)))
}

/// Whose words these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    User(Setting),
    Agent,
}

impl Speaker {
    /// By the kind of the observation; nobody whose words bind for any other.
    fn of(kind: &str) -> Option<Self> {
        match kind {
            "user_statement" => Some(Self::User(Setting::Conversation)),
            "feedback" => Some(Self::User(Setting::Feedback)),
            "agent_statement" => Some(Self::Agent),
            _ => None,
        }
    }

    fn name(self, who: Who) -> &'static str {
        match (who, self) {
            (Who::Both, _) => "both",
            (Who::Speaker, Self::User(_)) | (Who::Listener, Self::Agent) => "user",
            (Who::Listener, Self::User(_)) | (Who::Speaker, Self::Agent) => "agent",
        }
    }
}

/// What was read out of an observation.
#[derive(Debug, Default)]
struct Read {
    commitments: Vec<NewCommitment>,
    settled: Vec<(String, CommitmentStatus)>,
    proposals: Vec<NewProposal>,
}

fn read(
    text: &str,
    speaker: Speaker,
    open: &[Commitment],
    instructions: &Instructions,
    now: &Moment,
) -> Read {
    let mut read = Read::default();
    let mut lines = Vec::new();
    let matters: Vec<BTreeSet<String>> = open.iter().map(|open| matter(&open.said.text)).collect();
    for sentence in sentences(text) {
        let settled = closing::find(&sentence).into_iter().find_map(|closing| {
            let place = closing::meant(&closing, &matters)?;
            open.get(place).map(|there| (closing, there))
        });
        if let Some((closing, there)) = settled {
            let status = match closing.settled {
                Settled::Done => CommitmentStatus::Done,
                Settled::Dropped => CommitmentStatus::Dropped,
            };
            read.settled.push((there.id.clone(), status));
            continue;
        }
        if let Speaker::User(setting) = speaker
            && let Some(line) = feedback::find(&sentence, setting)
        {
            lines.push((line, short(sentence.text)));
            continue;
        }
        read.commitments.extend(commitments(&sentence, speaker, now));
    }
    read.commitments.truncate(MOST_NOTED);
    read.proposals.extend(proposal::draft(lines, instructions));
    read
}

fn commitments(sentence: &Sentence<'_>, speaker: Speaker, now: &Moment) -> Vec<NewCommitment> {
    let said = commitment::find(sentence, &now.local());
    let kept = said.into_iter().map(|said| NewCommitment {
        who: speaker.name(said.who).to_owned(),
        words: compared(&said.text),
        text: short(&said.text),
        due_at: said.due.map(|due| due.as_microsecond()),
        sentence: short(sentence.text),
    });
    kept.collect()
}

/// What a commitment is compared by: its words in any order, or as it stands if none of them means anything.
fn compared(text: &str) -> String {
    let words: Vec<String> = matter(text).into_iter().collect();
    short(&if words.is_empty() { fold(text) } else { words.join(" ") })
}

fn short(text: &str) -> String {
    cut(text, SENTENCE)
}

/// The first so many characters; the last of them says that there was more.
pub(crate) fn cut(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    text.chars().take(characters.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests;
