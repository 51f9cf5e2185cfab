//! Records of fixed size, each from one list of fields: the type, its bytes, and the C structure (`header.rs`).

/// What a field can be: little-endian, one after the other.
pub trait Part: Sized {
    /// In C: the type, and what follows the name.
    const C: (&'static str, usize);
    fn take(bytes: &[u8], at: &mut usize) -> Self;
    fn put(&self, out: &mut [u8], at: &mut usize);
}

macro_rules! numbers {
    ($($kind:ty = $c:literal,)*) => {
        $(impl Part for $kind {
            const C: (&'static str, usize) = ($c, 1);

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
    u8 = "unsigned char",
    u16 = "uint16_t",
    u32 = "uint32_t",
    u64 = "uint64_t",
    i64 = "int64_t",
}

impl<T: Part, const N: usize> Part for [T; N] {
    const C: (&'static str, usize) = (T::C.0, N);

    #[inline]
    fn take(bytes: &[u8], at: &mut usize) -> Self {
        std::array::from_fn(|_| T::take(bytes, at))
    }

    #[inline]
    fn put(&self, out: &mut [u8], at: &mut usize) {
        self.iter().for_each(|one| one.put(out, at));
    }
}

/// A record: its fields in order, and its bytes. What fields leave of those is zeros.
macro_rules! record {
    ($(#[$about:meta])* $name:ident, $bytes:expr; $($(#[$note:meta])* $field:ident: $kind:ty,)*) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name {
            $($(#[$note])* pub $field: $kind,)*
        }

        impl $name {
            /// Name, and in C the type and how many.
            pub(crate) const FIELDS: &'static [(&'static str, (&'static str, usize))] =
                &[$((stringify!($field), <$kind as $crate::record::Part>::C),)*];

            #[inline]
            pub(crate) fn take(bytes: &[u8; $bytes]) -> Self {
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
