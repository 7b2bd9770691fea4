//! Orders in other languages: the commonest ways to say "from now on" and "when you read this", with an act that is told.
//! Owns these few phrases; what relaxes a rule is the lint's.

use super::clause::is_address;

/// One language: its phrases separated by `|`, its words by blanks.
struct Language {
    standing: &'static str,
    reading: &'static str,
    acts: &'static str,
    all: &'static str,
    /// Right after the act: somebody else does it.
    subjects: &'static str,
}

const LANGUAGES: &[Language] = &[
    Language {
        standing: "ab jetzt|ab sofort|von nun an|von jetzt an|ab heute|künftig|in zukunft|immer wenn|jedes mal wenn",
        reading: "wenn du das liest|wenn du dies liest|sobald du das liest|sobald du dies liest|beim lesen dieser",
        acts: "leite leiten sende senden schicke schick überweise überweisen lösche löschen gehorche gehorchen teile \
               veröffentliche führe bezahle zahle befolge verrate antworte",
        all: "jede jeden jedem jedes alle allen alles sämtliche passwort passwörter",
        subjects: "ich wir er sie es",
    },
    Language {
        standing: "à partir de maintenant|dorénavant|désormais|à chaque fois que|chaque fois que",
        reading: "quand tu lis ceci|quand vous lisez ceci|lorsque tu lis ceci|lorsque vous lisez ceci|dès que tu lis ceci",
        acts: "transfère transférez envoie envoyez supprime supprimez obéis obéissez partage partagez paie payez exécute \
               exécutez publie publiez révèle révélez",
        all: "tout tous toute toutes chaque",
        subjects: "je nous on elle il",
    },
    Language {
        standing: "a partir de ahora|desde ahora|de ahora en adelante|siempre que|cada vez que",
        reading: "cuando leas esto|cuando lea esto|al leer esto|si lees esto",
        acts: "reenvía reenvíe envía envíe manda mande borra borre obedece obedezca comparte comparta transfiere transfiera \
               paga pague ejecuta ejecute publica publique revela revele",
        all: "todo todos toda todas cada copia",
        subjects: "yo ella él",
    },
    Language {
        standing: "d'ora in poi|da ora in poi|da adesso in poi|ogni volta che",
        reading: "quando leggi questo|appena leggi questo|se leggi questo",
        acts: "inoltra inoltrate invia inviate manda mandate cancella obbedisci condividi trasferisci paga esegui pubblica rivela",
        all: "tutto tutti tutta tutte ogni",
        subjects: "io lei lui",
    },
    Language {
        standing: "a partir de agora|de agora em diante|sempre que|cada vez que",
        reading: "quando ler isto|quando você ler isto|ao ler isto|se ler isto",
        acts: "encaminhe encaminha envie envia mande manda apague apaga obedeça obedece compartilhe compartilha transfira pague \
               execute publique revele",
        all: "tudo todo todos toda todas cada",
        subjects: "eu ela ele",
    },
    Language {
        standing: "с этого момента|отныне|впредь|с сегодняшнего дня|каждый раз когда",
        reading: "когда прочитаешь это|когда прочтёшь это|прочитав это",
        acts: "пересылай пересылайте отправляй отправляйте отправь удаляй удали подчиняйся выполняй плати переводи публикуй",
        all: "все всё всех каждое каждый каждую",
        subjects: "я мы он она",
    },
];

/// Languages without blanks: standing or reading phrases, acts, and who else may do it.
const UNSPACED: &[(&str, &str, &str, &str)] = &[
    (
        "从现在起|从现在开始|从今以后|今后|每次|读到这|看到这|讀到這|看到這|從現在起",
        "转发|轉發|发送|發送|发给|發給|删除|刪除|服从|执行|转账|支付",
        "所有|全部|每|任何|密码",
        "我|他|她|我们",
    ),
    (
        "これからは|今後は|今後|これを読んだら|毎回",
        "転送|送信|送って|削除|従って|従い|実行して|支払",
        "すべて|全て|全部|毎回|パスワード",
        "私|彼|彼女",
    ),
];

/// Whether any sentence tells the reader, in one of these languages, to do something from now on or on reading.
pub(super) fn commands(text: &str) -> bool {
    let text = text.to_lowercase().replace('’', "'");
    sentences(&text).any(|sentence| {
        LANGUAGES.iter().any(|language| language.commands(sentence))
            || UNSPACED.iter().any(|row| is_unspaced(sentence, row))
    })
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '!', '?', '。', '！', '？']).flat_map(|line| line.split(". "))
}

impl Language {
    fn commands(&self, sentence: &str) -> bool {
        let standing = self.standing.split('|').any(|phrase| contains(sentence, phrase));
        let reading = self.reading.split('|').any(|phrase| contains(sentence, phrase));
        if !standing && !reading {
            return false;
        }
        let words: Vec<&str> = sentence
            .split(|c: char| !c.is_alphanumeric() && c != '\'')
            .filter(|word| !word.is_empty())
            .collect();
        let lists = |list: &str, word: &&str| list.split_ascii_whitespace().any(|one| one == *word);
        let told = words.iter().enumerate().any(|(at, word)| {
            lists(self.acts, word) && !words.get(at + 1).is_some_and(|next| lists(self.subjects, next))
        });
        let begins = words.iter().any(|word| lists(self.subjects, word));
        let swept = words.iter().any(|word| lists(self.all, word))
            || sentence.split_whitespace().any(|word| is_address(word.trim_matches(['.', ','])));
        told && !begins && (reading || swept)
    }
}

/// Whether a phrase stands in a sentence as whole words.
fn contains(sentence: &str, phrase: &str) -> bool {
    sentence.match_indices(phrase).any(|(at, _)| {
        let before = sentence.get(..at).and_then(|text| text.chars().next_back());
        let after = sentence.get(at + phrase.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

fn is_unspaced(sentence: &str, (when, acts, all, subjects): &(&str, &str, &str, &str)) -> bool {
    let has = |list: &str| list.split('|').any(|word| sentence.contains(word));
    has(when) && has(acts) && !has(subjects) && (has(all) || sentence.contains('@'))
}
