//! The review kinds: they are asked, answered, and not kept.

use serde_json::{Value, json};

use crate::inner::Inner;
use crate::matching::RequestInfo;
use crate::{Resource, ResourceName, Verb};

/// The answer to a review: the object with its status.
pub(crate) fn answer(inner: &Inner, resource: &Resource, mut object: Value, request: &RequestInfo) -> Value {
    let user = request.user.as_deref().unwrap_or("system:anonymous");
    let status = match &*resource.kind {
        "SelfSubjectReview" => json!({"userInfo": {"username": user, "groups": ["system:authenticated"]}}),
        "TokenReview" => {
            let token = object["spec"]["token"].as_str().unwrap_or_default();
            match inner.access.lock().authenticate(Some(&format!("Bearer {token}"))) {
                Ok(user) => json!({"authenticated": true, "user": {"username": user}}),
                Err(_) => json!({"authenticated": false}),
            }
        }
        _ => {
            let user = object["spec"]["user"].as_str().unwrap_or(user);
            let asked = asked(&object["spec"]["resourceAttributes"], user);
            json!({"allowed": !inner.access.lock().is_forbidden(&asked)})
        }
    };
    if !object.is_object() {
        object = json!({});
    }
    object["kind"] = json!(resource.kind);
    object["apiVersion"] = json!(resource.api_version());
    object["status"] = status;
    object
}

/// The request that an access review asks about.
fn asked(attributes: &Value, user: &str) -> RequestInfo {
    let text = |name: &str| attributes[name].as_str().unwrap_or_default().to_owned();
    let verbs = [Verb::Get, Verb::List, Verb::Watch, Verb::Create, Verb::Update, Verb::Patch, Verb::Delete];
    let verb = verbs.into_iter().chain([Verb::DeleteCollection]).find(|verb| verb.as_str() == text("verb"));
    let version = Some(text("version")).filter(|version| !["", "*"].contains(&version.as_str()));
    RequestInfo {
        verb,
        resource: Some(ResourceName::new(text("group"), version.unwrap_or_else(|| "v1".to_owned()), text("resource"))),
        namespace: Some(text("namespace")).filter(|namespace| !namespace.is_empty()),
        name: text("name"),
        user: Some(user.to_owned()),
        streaming_list: false,
        continuation: false,
    }
}
