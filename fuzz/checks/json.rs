//! A reader of JSON that shares nothing with ours: what stands where, as it was written. Numbers and words are not looked
//! into, and a string may hold half a character: what is only passed on need not make sense.

/// Nothing that is deeper is looked at.
const DEEPEST: usize = 100;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Item<'a> {
    /// As it was written.
    pub(crate) raw: &'a str,
    pub(crate) node: Node<'a>,
}

#[derive(Debug, Clone)]
pub(crate) enum Node<'a> {
    Object(Vec<(Option<String>, Item<'a>)>),
    Array(Vec<Item<'a>>),
    /// Without its escapes; nothing, if they make no text.
    Text(Option<String>),
    Number,
    Word,
}

/// What the whole text is; nothing, if it is no JSON.
pub(crate) fn read(text: &str) -> Option<Item<'_>> {
    let mut reader = Reader { text, at: 0 };
    let item = reader.value(0)?;
    reader.space();
    (reader.at == text.len()).then_some(item)
}

impl Item<'_> {
    /// The member of this name; of several the last.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        let Node::Object(members) = &self.node else { return None };
        members.iter().rev().find(|(key, _)| key.as_deref() == Some(name)).map(|(_, item)| item)
    }

    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        if let Node::Text(text) = &self.node { text.as_deref() } else { None }
    }

    /// Levels of nesting.
    pub(crate) fn depth(&self) -> usize {
        match &self.node {
            Node::Object(members) => 1 + members.iter().map(|(_, item)| item.depth()).max().unwrap_or(0),
            Node::Array(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Node::Text(_) | Node::Number | Node::Word => 0,
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn space(&mut self) {
        self.at += self.rest().iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_there = self.rest().starts_with(word.as_bytes());
        self.at += if is_there { word.len() } else { 0 };
        is_there
    }

    fn value(&mut self, depth: usize) -> Option<Item<'a>> {
        self.space();
        let from = self.at;
        let node = match self.rest().first()? {
            b'{' | b'[' if depth == DEEPEST => return None,
            b'{' => Node::Object(self.members(depth)?),
            b'[' => Node::Array(self.items(depth)?),
            b'"' => Node::Text(self.string()?),
            b't' | b'f' | b'n' if ["true", "false", "null"].iter().any(|word| self.takes(word)) => Node::Word,
            b'-' | b'0'..=b'9' => self.number()?,
            _ => return None,
        };
        Some(Item { raw: &self.text[from..self.at], node })
    }

    fn members(&mut self, depth: usize) -> Option<Vec<(Option<String>, Item<'a>)>> {
        let mut members = Vec::new();
        self.takes("{");
        self.space();
        if self.takes("}") {
            return Some(members);
        }
        loop {
            self.space();
            let key = self.string()?;
            self.space();
            let value = if self.takes(":") { self.value(depth + 1)? } else { return None };
            members.push((key, value));
            self.space();
            if self.takes("}") {
                return Some(members);
            }
            if !self.takes(",") {
                return None;
            }
        }
    }

    fn items(&mut self, depth: usize) -> Option<Vec<Item<'a>>> {
        let mut items = Vec::new();
        self.takes("[");
        self.space();
        if self.takes("]") {
            return Some(items);
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            if self.takes("]") {
                return Some(items);
            }
            if !self.takes(",") {
                return None;
            }
        }
    }

    fn number(&mut self) -> Option<Node<'a>> {
        self.takes("-");
        if !self.takes("0") && self.digits() == 0 {
            return None;
        }
        if self.takes(".") && self.digits() == 0 {
            return None;
        }
        if self.takes("e") || self.takes("E") {
            let _ = self.takes("+") || self.takes("-");
            if self.digits() == 0 {
                return None;
            }
        }
        Some(Node::Number)
    }

    fn digits(&mut self) -> usize {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    /// A string without its escapes. The outer nothing: it is none; the inner: it makes no text.
    fn string(&mut self) -> Option<Option<String>> {
        if !self.takes("\"") {
            return None;
        }
        let mut units: Vec<u16> = Vec::new();
        loop {
            let next = self.text[self.at..].chars().next()?;
            self.at += next.len_utf8();
            match next {
                '"' => return Some(String::from_utf16(&units).ok()),
                '\\' => units.push(self.escaped()?),
                '\0'..='\x1f' => return None,
                other => units.extend_from_slice(other.encode_utf16(&mut [0; 2])),
            }
        }
    }

    fn escaped(&mut self) -> Option<u16> {
        let byte = *self.rest().first()?;
        self.at += 1;
        Some(match byte {
            b'"' | b'\\' | b'/' => byte.into(),
            b'b' => 8,
            b'f' => 12,
            b'n' => 10,
            b'r' => 13,
            b't' => 9,
            b'u' => {
                let digits =
                    self.rest().get(..4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
                self.at += 4;
                u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
            }
            _ => return None,
        })
    }
}
