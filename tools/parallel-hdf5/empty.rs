//! Holds a dependency, nothing else.
