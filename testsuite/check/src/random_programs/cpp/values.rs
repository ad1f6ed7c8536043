//! Types, variables and expressions.

use super::Generator;

/// A type of the program's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Type {
    U8,
    I32,
    U32,
    I64,
    U64,
    Float,
    Double,
}

impl Type {
    pub const ALL: [Self; 7] = [
        Self::U8,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::Float,
        Self::Double,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "uint8_t",
            Self::I32 => "int32_t",
            Self::U32 => "uint32_t",
            Self::I64 => "int64_t",
            Self::U64 => "uint64_t",
            Self::Float => "float",
            Self::Double => "double",
        }
    }

    pub fn is_floating(self) -> bool {
        matches!(self, Self::Float | Self::Double)
    }

    fn is_unsigned(self) -> bool {
        matches!(self, Self::U8 | Self::U32 | Self::U64)
    }
}

/// A variable in scope.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub name: String,
    pub ty: Type,
    pub is_constant: bool,
}

/// An array of the program's; its length is a power of two.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub name: String,
    pub ty: Type,
    pub len: u32,
}

/// Depth of expressions.
pub(super) const DEPTH: u32 = 3;

impl Generator {
    pub(super) fn ty(&mut self) -> Type {
        self.pick(&Type::ALL)
    }

    /// An expression without side effects.
    pub(super) fn value(&mut self, ty: Type, depth: u32) -> String {
        if depth == 0 || self.one_in(4) {
            return self.leaf(ty);
        }
        let depth = depth - 1;
        let name = ty.name();
        match self.below(if ty.is_floating() { 9 } else { 12 }) {
            0 => self.leaf(ty),
            1 | 2 => {
                let condition = self.condition(depth);
                let [a, b] = self.values(ty, depth);
                format!("({condition} ? {a} : {b})")
            }
            3..=5 => {
                let operation = self.pick(&["add", "sub", "mul"]);
                let [a, b] = self.values(ty, depth);
                format!("{operation}<{name}>({a}, {b})")
            }
            6 => {
                let from = self.ty();
                format!("to<{name}>({})", self.value(from, depth))
            }
            7 if ty.is_floating() => {
                let function = self.pick(&["std::fabs", "std::floor", "std::sqrt"]);
                format!("to<{name}>({function}({}))", self.value(ty, depth))
            }
            7 => {
                // No overflow, which the compiler may rely on.
                let operation = self.pick(&["+", "-", "*"]);
                let [a, b] = self.values(Type::I32, depth);
                format!("to<{name}>(({a} & 1023) {operation} ({b} & 511))")
            }
            8 if ty.is_floating() => {
                let [a, b] = self.values(ty, depth);
                format!("to<{name}>({a} / {b})")
            }
            8 => {
                let operation = self.pick(&["/", "%"]);
                let [a, b] = self.values(ty, depth);
                format!("{name}({a} {operation} (({b} & 15) + 1))")
            }
            9 => {
                let operation = self.pick(&["&", "|", "^"]);
                let [a, b] = self.values(ty, depth);
                format!("{name}({a} {operation} {b})")
            }
            10 if ty.is_unsigned() => {
                let operation = self.pick(&["<<", ">>"]);
                let [a, b] = self.values(ty, depth);
                format!("{name}({a} {operation} ({b} & 7))")
            }
            10 => {
                let [a, b] = self.values(ty, depth);
                format!("{name}({a} >> ({b} & 15))")
            }
            _ => format!("{name}({})", self.condition(depth)),
        }
    }

    /// Two expressions, as [`Generator::value`].
    pub(super) fn values(&mut self, ty: Type, depth: u32) -> [String; 2] {
        [self.value(ty, depth), self.value(ty, depth)]
    }

    fn leaf(&mut self, ty: Type) -> String {
        if self.one_in(4) {
            return self.literal(ty);
        }
        if self.one_in(4) {
            let array = self.an_array();
            let element = self.element(&array, 1);
            return match array.ty == ty {
                true => element,
                false => format!("to<{}>({element})", ty.name()),
            };
        }
        let alike: Vec<Variable> = self.variables.iter().filter(|v| v.ty == ty).cloned().collect();
        if !alike.is_empty() && !self.one_in(4) {
            return self.pick(&alike).name;
        }
        let variables = self.variables.clone();
        format!("to<{}>({})", ty.name(), self.pick(&variables).name)
    }

    fn literal(&mut self, ty: Type) -> String {
        if ty.is_floating() {
            let value = self.pick(&["0.0", "1.0", "-1.5", "0.25", "1e6", "-3e-3", "17.0"]);
            return format!("{}({value})", ty.name());
        }
        let value = match self.below(4) {
            0 => self.pick(&["0", "1", "2", "127", "128", "255"]).to_owned(),
            _ => self.below(100).to_string(),
        };
        format!("{}({value})", ty.name())
    }

    /// A condition without side effects.
    pub(super) fn condition(&mut self, depth: u32) -> String {
        if depth > 0 && self.one_in(4) {
            let operation = self.pick(&["&&", "||"]);
            let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
            return format!("({a} {operation} {b})");
        }
        let ty = self.ty();
        if !ty.is_floating() && self.one_in(3) {
            // Rare, or often the same.
            let bits = self.pick(&[1, 3, 7, 31, 255]);
            return format!("(({} & {bits}) == 0)", self.value(ty, depth.min(1)));
        }
        let operation = self.pick(&["<", "<=", ">", "==", "!="]);
        let [a, b] = self.values(ty, depth.min(1));
        format!("({a} {operation} {b})")
    }

    /// An index of less than a power of two.
    pub(super) fn index(&mut self, below: u32, depth: u32) -> String {
        let ty = self.pick(&[Type::U32, Type::I32, Type::U8, Type::U64]);
        format!("({} & {})", self.value(ty, depth), below - 1)
    }

    pub(super) fn an_array(&mut self) -> Array {
        let arrays = self.arrays.clone();
        self.pick(&arrays)
    }

    pub(super) fn element(&mut self, array: &Array, depth: u32) -> String {
        // Elements of elements would never end.
        let variables: Vec<Variable> = self.variables.iter().filter(|v| !v.ty.is_floating()).cloned().collect();
        let index = match variables.is_empty() || depth > 1 {
            true => self.index(array.len, depth - 1),
            false => format!("({} & {})", self.pick(&variables).name, array.len - 1),
        };
        format!("{}[{index}]", array.name)
    }
}
