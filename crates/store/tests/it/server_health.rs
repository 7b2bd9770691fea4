//! The last contact with each server.

use std::time::Duration;

use crate::world::{World, contract};

contract!(the_last_contact_counts_and_the_last_error_stays);

async fn the_last_contact_counts_and_the_last_error_stays(world: World) {
    let (first, second) = (&world.store, world.second().await);
    assert_eq!(first.server_health().list().await.unwrap(), []);
    first.server_health().record("mail", Some("it ended")).await.unwrap();
    first.server_health().record("files", None).await.unwrap();
    let all = second.server_health().list().await.unwrap();
    let names: Vec<&str> = all.iter().map(|one| one.body.as_str()).collect();
    assert_eq!(names, ["files", "mail"]);
    assert_eq!((all[0].is_ok, all[0].error.as_deref(), all[0].error_at), (true, None, None));
    assert_eq!((all[1].is_ok, all[1].error.as_deref()), (false, Some("it ended")));
    assert_eq!(all[1].error_at, Some(all[1].checked_at));

    // A recovery keeps the error and its time.
    second.server_health().record("mail", None).await.unwrap();
    let mail = first.server_health().list().await.unwrap().remove(1);
    assert_eq!((mail.is_ok, mail.error.as_deref(), mail.error_at), (true, Some("it ended"), all[1].error_at));
    assert!(mail.checked_at >= all[1].checked_at);
    // A later error replaces it, and a long one is cut.
    first.server_health().record("mail", Some(&"é".repeat(2000))).await.unwrap();
    let mail = second.server_health().list().await.unwrap().remove(1);
    assert_eq!((mail.is_ok, mail.error.map(|error| error.chars().count())), (false, Some(500)));

    // A contact without news is not written again, unless the last one is old.
    const HOUR: Duration = Duration::from_secs(3600);
    let checked = async |error: Option<&str>, refresh| {
        first.server_health().record_news("files", error, refresh).await.unwrap();
        second.server_health().list().await.unwrap().remove(0)
    };
    let known = second.server_health().list().await.unwrap().remove(0);
    assert_eq!(checked(None, HOUR).await, known);
    let failed = checked(Some("it ended"), HOUR).await;
    assert_eq!((failed.is_ok, failed.error.as_deref()), (false, Some("it ended")));
    assert_eq!(checked(Some("it ended"), HOUR).await, failed);
    assert_eq!(checked(Some("another"), HOUR).await.error.as_deref(), Some("another"));
    assert!(checked(Some("another"), Duration::ZERO).await.checked_at > failed.checked_at);
    assert!(checked(None, HOUR).await.is_ok);

    first.server_health().remove("mail").await.unwrap();
    first.server_health().remove("unknown").await.unwrap();
    assert_eq!(second.server_health().list().await.unwrap().len(), 1);
    assert!(first.server_health().record("", None).await.is_err());
}
