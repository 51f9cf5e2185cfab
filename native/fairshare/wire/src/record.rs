//! Records of fixed size, each from one list of fields: the type, its bytes, the C structure (`header.rs`) and Python's
//! (`python.rs`).

/// A message that cannot be what it claims to be. The text says which part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "malformed message: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// A field in other languages: its type in C and its letter for Python's `struct`, and how many of them.
#[derive(Clone, Copy)]
pub struct Kind {
    pub c: &'static str,
    pub python: char,
    pub count: usize,
}

/// What a field can be: little-endian, one after the other.
pub trait Part: Sized {
    const KIND: Kind;
    fn take(bytes: &[u8], at: &mut usize) -> Self;
    fn put(&self, out: &mut [u8], at: &mut usize);
}

macro_rules! numbers {
    ($($kind:ty = $c:literal $python:literal,)*) => {
        $(impl Part for $kind {
            const KIND: Kind = Kind { c: $c, python: $python, count: 1 };

            #[inline]
            fn take(bytes: &[u8], at: &mut usize) -> Self {
                let size = std::mem::size_of::<Self>();
                *at += size;
                Self::from_le_bytes(bytes[*at - size..*at].try_into().expect("as many as it has"))
            }

            #[inline]
            fn put(&self, out: &mut [u8], at: &mut usize) {
                let bytes = self.to_le_bytes();
                out[*at..*at + bytes.len()].copy_from_slice(&bytes);
                *at += bytes.len();
            }
        })*
    };
}

numbers! {
    u8 = "unsigned char" 'B',
    u16 = "uint16_t" 'H',
    u32 = "uint32_t" 'I',
    u64 = "uint64_t" 'Q',
    i64 = "int64_t" 'q',
}

impl<T: Part, const N: usize> Part for [T; N] {
    const KIND: Kind = Kind { count: N, ..T::KIND };

    #[inline]
    fn take(bytes: &[u8], at: &mut usize) -> Self {
        std::array::from_fn(|_| T::take(bytes, at))
    }

    #[inline]
    fn put(&self, out: &mut [u8], at: &mut usize) {
        self.iter().for_each(|one| one.put(out, at));
    }
}

/// A record's fields by name, in order.
pub type Fields = &'static [(&'static str, Kind)];

/// A record: its fields in order, and its bytes. What fields leave of those is zeros.
macro_rules! record {
    ($(#[$about:meta])* $name:ident, $bytes:expr; $($(#[$note:meta])* $field:ident: $kind:ty,)*) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name {
            $($(#[$note])* pub $field: $kind,)*
        }

        impl $name {
            #[allow(dead_code, reason = "not all are said in other languages")]
            pub(crate) const FIELDS: $crate::record::Fields =
                &[$((stringify!($field), <$kind as $crate::record::Part>::KIND),)*];

            #[inline]
            pub fn take(bytes: &[u8; $bytes]) -> Self {
                let mut at = 0;
                $(let $field = <$kind as $crate::record::Part>::take(bytes, &mut at);)*
                Self { $($field,)* }
            }

            #[inline]
            pub fn to_bytes(self) -> [u8; $bytes] {
                let (mut bytes, mut at) = ([0; $bytes], 0);
                $($crate::record::Part::put(&self.$field, &mut bytes, &mut at);)*
                bytes
            }
        }
    };
}
pub(crate) use record;
