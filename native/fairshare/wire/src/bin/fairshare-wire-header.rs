//! Prints the C client's header, or with `--python` the Python module.

fn main() {
    let python = std::env::args().nth(1).is_some_and(|word| word == "--python");
    print!(
        "{}",
        if python {
            wire::python::module()
        } else {
            wire::header::header()
        }
    );
}
