//! Prints the C client's header.

fn main() {
    print!("{}", wire::header::header());
}
