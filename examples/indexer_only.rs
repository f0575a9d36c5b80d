//! The indexer alone: books by author and by shelf. No Kubernetes, no async.
//!
//! An index is kept by the store, not by its user: it is exact after each write, and answers without a walk.
//!
//! ```text
//! cargo run --example indexer_only
//! ```

use std::sync::Arc;

use kubewire_indexer::{IndexFunc, Indexers, Store, Write};

struct Book {
    title: &'static str,
    authors: Vec<&'static str>,
    /// `None` while it is lent out.
    shelf: Option<String>,
}

type Books = Store<u32, Arc<Book>>;

fn titles(mut books: Vec<Arc<Book>>) -> Vec<&'static str> {
    books.sort_by_key(|book| book.title); // What an index finds comes in no order.
    books.iter().map(|book| book.title).collect()
}

fn fill(books: &Books) {
    let book = |title, authors: &[&'static str], shelf: &str| {
        Arc::new(Book { title, authors: authors.to_vec(), shelf: Some(shelf.to_owned()) })
    };
    books.add(1, book("Hopper and the Moth", &["ada", "grace"], "A1"));
    books.add(2, book("Engines", &["ada"], "A1"));
    books.add(3, book("Compilers for Tea", &["grace"], "B2"));
}

fn main() -> anyhow::Result<()> {
    let books = Books::with_indexers(
        Indexers::none()
            // An object can have any number of values in an index: several authors,
            .with("author", IndexFunc::many(|book: &Arc<Book>| book.authors.clone()))
            // or none, while it stands on no shelf.
            .with("shelf", IndexFunc::maybe(|book: &Arc<Book>| book.shelf.as_deref())),
    )?;
    fill(&books);

    println!("by ada: {:?}", titles(books.by_index("author", "ada")?));
    println!("on A1: {:?}", books.index_keys("shelf", "A1")?);
    anyhow::ensure!(books.index_keys("author", "grace")? == [1, 3]);

    // A book is lent out: objects are shared and never changed, so a new state takes the place of the old one.
    let lent = |book: &Book| Arc::new(Book { title: book.title, authors: book.authors.clone(), shelf: None });
    if let Some(book) = books.get(&2) {
        books.update(2, lent(&book));
    }
    println!("on A1: {:?}", titles(books.by_index("shelf", "A1")?));
    anyhow::ensure!(books.index_keys("shelf", "A1")? == [1]);

    // Several writes in one step: no reader sees one without the other.
    let moved = Arc::new(Book { title: "Engines", authors: vec!["ada"], shelf: Some("C3".to_owned()) });
    books.transaction([Write::Put(2, moved), Write::Delete(3)]);
    println!("shelves in use: {:?}", books.list_index_func_values("shelf"));
    anyhow::ensure!(books.len() == 2);

    // An index may be added to a filled store.
    let initial = IndexFunc::many(|book: &Arc<Book>| book.title.chars().take(1).map(String::from).collect::<Vec<_>>());
    books.add_indexers(Indexers::none().with("initial", initial))?;
    println!("with E: {:?}", titles(books.by_index("initial", "E")?));

    // A name that nobody has defined is an error, not an empty answer.
    println!("{}", books.by_index("colour", "red").err().map_or_else(String::new, |error| error.to_string()));
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
