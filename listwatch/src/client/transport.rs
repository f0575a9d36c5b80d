//! PURE. The class of an error that kube-client gives.

use std::error::Error;
use std::io::{self, ErrorKind};

use kube_client::client::AuthError;

use crate::{ErrorClass, RequestError};

/// The error of a request that got no answer.
pub(crate) fn error_of_send(error: kube_client::Error) -> RequestError {
    let class = match &error {
        // The credentials could not be made: a token file, an exec plugin.
        kube_client::Error::Auth(_) => ErrorClass::Unauthorized,
        kube_client::Error::BuildRequest(_) | kube_client::Error::HttpError(_) => ErrorClass::Invalid,
        _ if find::<AuthError>(&error).is_some() => ErrorClass::Unauthorized,
        _ => class_of_io(&error, ErrorClass::Transport),
    };
    let advice = advice(&error);
    let mut error = new(class, "no connection, or none that gave an answer", error);
    if let Some(advice) = advice {
        error = error.advise(advice);
    }
    error
}

/// What to do about a connection that cannot be made, where that is known.
fn advice(error: &kube_client::Error) -> Option<&'static str> {
    #[cfg(feature = "rustls-tls")]
    if let Some(error) = find::<rustls::Error>(error) {
        return advice_of_tls(error);
    }
    let no_http = find::<hyper::Error>(error).is_some_and(hyper::Error::is_parse);
    no_http.then_some(
        "the answer is no HTTP, or not a server's; if it is a TLS port, use an https:// address, else look at what stands \
         before the server",
    )
}

#[cfg(feature = "rustls-tls")]
fn advice_of_tls(error: &rustls::Error) -> Option<&'static str> {
    use rustls::{AlertDescription as Alert, CertificateError as Bad, Error};
    Some(match error {
        Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            "the server's certificate is not of the CA that the client knows; if the CA was changed, give the client the \
             new one (a file in `Config::root_cert_file` is read again by itself)"
        }
        Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "the server's certificate has expired; renew it there, and look at the clock here"
        }
        Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            "the server's certificate is not valid yet; look at the clocks of both sides"
        }
        Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            "the server's certificate is for another name; use an address that it names, or set `Config::tls_server_name`"
        }
        Error::InvalidMessage(_) => "the server does not speak TLS; if it is a plain port, use an http:// address",
        Error::AlertReceived(
            Alert::CertificateRequired
            | Alert::BadCertificate
            | Alert::CertificateExpired
            | Alert::CertificateRevoked
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::UnsupportedCertificate
            | Alert::AccessDenied,
        ) => "the server does not accept the client's certificate; renew it (its files are read again by themselves)",
        _ => return None,
    })
}

/// The error of a body that broke off.
pub(crate) fn error_of_body(error: kube_client::Error) -> RequestError {
    let class = class_of_io(&error, ErrorClass::Truncated);
    new(class, "the answer broke off", error)
}

/// The class of the I/O error among the causes; `eof` for an end that comes too early.
fn class_of_io(error: &(dyn Error + 'static), eof: ErrorClass) -> ErrorClass {
    match find::<io::Error>(error).map(io::Error::kind) {
        Some(ErrorKind::ConnectionRefused) => ErrorClass::ConnectionRefused,
        Some(ErrorKind::TimedOut) => ErrorClass::TimedOut,
        Some(ErrorKind::UnexpectedEof) => eof,
        // A ping that was not answered.
        _ if find::<hyper::Error>(error).is_some_and(hyper::Error::is_timeout) => ErrorClass::TimedOut,
        _ => ErrorClass::Transport,
    }
}

/// The innermost cause of a type.
fn find<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    causes(error).filter_map(|error| error.downcast_ref()).last()
}

fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| cause(*error)).take(DEPTH_MAX)
}

/// The error behind one. (An `io::Error` around another error does not name that, but its source.)
fn cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

/// Nobody nests deeper, and a cycle must end.
const DEPTH_MAX: usize = 32;

fn new(class: ErrorClass, what: &str, error: kube_client::Error) -> RequestError {
    let root = causes(&error).last().map_or_else(String::new, ToString::to_string);
    RequestError::new(class, format!("{what}: {root}")).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(error: impl Into<crate::BoxError>) -> kube_client::Error {
        kube_client::Error::Service(error.into())
    }

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] io::Error);

    #[test]
    fn the_io_error_among_the_causes_decides() {
        let table = [
            (ErrorKind::ConnectionRefused, ErrorClass::ConnectionRefused, ErrorClass::ConnectionRefused),
            (ErrorKind::ConnectionReset, ErrorClass::Transport, ErrorClass::Transport),
            (ErrorKind::TimedOut, ErrorClass::TimedOut, ErrorClass::TimedOut),
            (ErrorKind::UnexpectedEof, ErrorClass::Transport, ErrorClass::Truncated),
        ];
        for (kind, of_send, of_body) in table {
            let nested = || service(Outer(io::Error::new(kind, "root cause")));
            assert_eq!(error_of_send(nested()).class(), of_send);
            assert_eq!(error_of_body(nested()).class(), of_body);
            assert!(error_of_body(nested()).to_string().ends_with("root cause"));
            assert!(error_of_body(nested()).source().is_some());
        }
        let wrapped = || service(io::Error::other(io::Error::from(ErrorKind::ConnectionRefused)));
        assert_eq!(error_of_send(wrapped()).class(), ErrorClass::ConnectionRefused);
        assert_eq!(error_of_send(service("no io error")).class(), ErrorClass::Transport);
        assert_eq!(error_of_send(service(AuthError::MissingCommand)).class(), ErrorClass::Unauthorized);
    }
}
