//! The grammar of a label selector.

use super::lexer::{Lexer, Spanned, Token};
use super::{Operator, Requirement, SelectorError, validate_label_name};

/// Reads the requirements of a selector, in the order of the text.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut lexer = Lexer::new(text);
    let mut requirements = Vec::new();
    if lexer.peek().0 == Token::End {
        return Ok(requirements);
    }
    loop {
        requirements.push(requirement(&mut lexer)?);
        match lexer.next() {
            (Token::End, _) => return Ok(requirements),
            (Token::Sign(","), _) => {}
            other => return Err(unexpected(&lexer, other, "`,` or the end")),
        }
    }
}

fn requirement(lexer: &mut Lexer<'_>) -> Result<Requirement, SelectorError> {
    let absent = lexer.peek().0 == Token::Sign("!");
    if absent {
        lexer.next();
    }
    let name = match lexer.next() {
        (Token::Word(name), _) => name,
        other => return Err(unexpected(lexer, other, "a label name, or `!` and a label name")),
    };
    // Before the rest, so that a bad name is told first.
    validate_label_name(name).map_err(|problem| SelectorError::Name { name: name.to_owned(), problem })?;
    if absent {
        return Requirement::new(name, Operator::DoesNotExist, NONE);
    }
    if matches!(lexer.peek().0, Token::End | Token::Sign(",")) {
        return Requirement::new(name, Operator::Exists, NONE);
    }
    let operator = operator(lexer)?;
    match operator {
        Operator::In | Operator::NotIn => Requirement::new(name, operator, set(lexer)?),
        _ => Requirement::new(name, operator, [exact(lexer)?]),
    }
}

const NONE: [&str; 0] = [];

fn operator(lexer: &mut Lexer<'_>) -> Result<Operator, SelectorError> {
    Ok(match lexer.next() {
        (Token::Sign("="), _) => Operator::Equals,
        (Token::Sign("=="), _) => Operator::DoubleEquals,
        (Token::Sign("!="), _) => Operator::NotEquals,
        (Token::Sign(">"), _) => Operator::GreaterThan,
        (Token::Sign("<"), _) => Operator::LessThan,
        (Token::Word("in"), _) => Operator::In,
        (Token::Word("notin"), _) => Operator::NotIn,
        other => return Err(unexpected(lexer, other, "one of `=`, `==`, `!=`, `in`, `notin`, `>`, `<`")),
    })
}

/// The value behind `=` and the like; empty where none stands there.
fn exact<'a>(lexer: &mut Lexer<'a>) -> Result<&'a str, SelectorError> {
    if matches!(lexer.peek().0, Token::End | Token::Sign(",")) {
        return Ok("");
    }
    match lexer.next() {
        (Token::Word(value), _) => Ok(value),
        other => Err(unexpected(lexer, other, "a value")),
    }
}

/// The values in parentheses; `()` has none. Before the first comma, behind the last one and between two a value
/// may be missing, and is the empty one then. As the API has it, two commas are taken in one step, so that
/// `(a,)` is right and `(a,,)` is not.
fn set<'a>(lexer: &mut Lexer<'a>) -> Result<Vec<&'a str>, SelectorError> {
    match lexer.next() {
        (Token::Sign("("), _) => {}
        other => return Err(unexpected(lexer, other, "`(`")),
    }
    let mut values = Vec::new();
    if lexer.peek().0 == Token::Sign(")") {
        lexer.next();
        return Ok(values);
    }
    loop {
        match lexer.next() {
            (Token::Word(value), _) => {
                values.push(value);
                match lexer.peek() {
                    (Token::Sign(","), _) => {}
                    (Token::Sign(")"), _) => {
                        lexer.next();
                        return Ok(values);
                    }
                    other => return Err(unexpected(lexer, other, "`,` or `)`")),
                }
            }
            (Token::Sign(","), _) => {
                if values.is_empty() {
                    values.push("");
                }
                match lexer.peek().0 {
                    Token::Sign(")") => {
                        lexer.next();
                        values.push("");
                        return Ok(values);
                    }
                    Token::Sign(",") => {
                        lexer.next();
                        values.push("");
                    }
                    _ => {}
                }
            }
            other => return Err(unexpected(lexer, other, "a value, `,` or `)`")),
        }
    }
}

fn unexpected(lexer: &Lexer<'_>, (token, position): Spanned<'_>, want: &'static str) -> SelectorError {
    let found = match token {
        Token::Word(word) => format!("{word:?} at byte {position}"),
        Token::Sign(sign) => format!("{sign:?} at byte {position}"),
        Token::End => "the end".to_owned(),
    };
    SelectorError::Syntax { text: lexer.text().to_owned(), found, want }
}
