//! Random C++ programs with what csmith's have not: exceptions and destructors, virtual calls, templates, lambdas,
//! floating-point numbers, vectorisable loops, memory operations of any length, computed gotos and guaranteed tail
//! calls.
//!
//! They have no undefined behaviour: integers wrap in helpers, and indices are masked. Every program ends: a function
//! calls those before it in the source, and itself a few deep.

mod interpreters;
mod statements;
mod values;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use statements::Around;
use values::{Array, Type, Variable};

const PRELUDE: &str = include_str!("prelude.cpp");
/// The main function, which prints after each call of the first function.
const MAIN: &str = include_str!("main.cpp");
/// Statements of a function.
const MAX_STATEMENTS: u32 = 40;
const FUNCTIONS: u32 = 6;
const CLASSES: u32 = 3;

/// Something that a statement can call.
#[derive(Clone, Debug)]
struct Callable {
    /// What stands before the arguments.
    call: String,
    parameters: Vec<Type>,
    returns: Type,
}

/// A program in the making.
struct Generator {
    random: Xoshiro256PlusPlus,
    text: String,
    indent: usize,
    /// Number of names that were given.
    names: u32,
    /// Statements that the function may still get.
    left: u32,
    arrays: Vec<Array>,
    /// In scope.
    variables: Vec<Variable>,
    callable: Vec<Callable>,
}

/// A program. Equal seeds give equal programs.
pub(super) fn program(seed: u64) -> String {
    let mut generator = Generator {
        random: Xoshiro256PlusPlus::seed_from_u64(seed),
        text: PRELUDE.to_owned(),
        indent: 0,
        names: 0,
        left: 0,
        arrays: Vec::new(),
        variables: Vec::new(),
        callable: Vec::new(),
    };
    generator.globals();
    generator.interpreters();
    generator.classes();
    for number in (1..=FUNCTIONS).rev() {
        generator.function(number);
    }
    generator.main();
    generator.text
}

impl Generator {
    fn below(&mut self, end: u32) -> u32 {
        // A bias of 2⁻³² does not matter here.
        ((u64::from(self.random.next_u32()) * u64::from(end)) >> 32) as u32
    }

    fn one_in(&mut self, of: u32) -> bool {
        self.below(of) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize].clone()
    }

    fn name(&mut self, kind: &str) -> String {
        self.names += 1;
        format!("{kind}_{}", self.names)
    }

    fn line(&mut self, line: &str) {
        self.text += &"    ".repeat(self.indent);
        self.text += line;
        self.text.push('\n');
    }

    fn globals(&mut self) {
        self.line("");
        for ty in Type::ALL {
            let name = self.name("g");
            self.line(&format!("static {} {name} = {};", ty.name(), self.names));
            self.variables.push(Variable {
                name,
                ty,
                is_constant: false,
            });
            let (name, len) = (self.name("g"), self.pick(&[8, 32, 64]));
            self.line(&format!("static {} {name}[{len}];", ty.name()));
            self.arrays.push(Array { name, ty, len });
        }
        self.line("static uint8_t g_bytes[64];");
        self.line("static char g_text[65];");
    }

    /// Classes with a virtual function each, and functions that call it.
    fn classes(&mut self) {
        let (returns, parameter) = (self.ty(), self.ty());
        let head = format!("{} visit({} x)", returns.name(), parameter.name());
        self.line("");
        self.line("struct Base {");
        self.line(&format!("    virtual {head} = 0;"));
        self.line("    virtual ~Base() {}");
        self.line("};");
        for number in 1..=CLASSES {
            // Of the class before, at times.
            let base = match number > 1 && self.one_in(3) {
                true => format!("Class_{}", number - 1),
                false => "Base".to_owned(),
            };
            let (ty, field) = (self.ty(), format!("field_{number}"));
            self.line("");
            self.line(&format!("struct Class_{number} : {base} {{"));
            self.line(&format!("    {} {field} = {};", ty.name(), number));
            self.indent += 1;
            let parameters = [("x".to_owned(), parameter), (field, ty)];
            self.body(&format!("{head} override"), &parameters, returns, None);
            self.indent -= 1;
            self.line("};");
            self.line(&format!("static Class_{number} object_{number};"));
        }
        let objects: Vec<String> = (0..8).map(|_| format!("&object_{}", 1 + self.below(CLASSES))).collect();
        self.line(&format!("static Base *const objects[8] = {{{}}};", objects.join(", ")));
        self.line("static uint32_t turn;");
        self.callable.push(Callable {
            call: "objects[turn++ & 7]->visit".into(),
            parameters: vec![parameter],
            returns,
        });
    }

    fn function(&mut self, number: u32) {
        let returns = self.ty();
        let count = 1 + self.below(3);
        let parameters: Vec<(String, Type)> = (0..count).map(|_| (self.name("p"), self.ty())).collect();
        let shown: Vec<String> = parameters
            .iter()
            .map(|(name, ty)| format!("{} {name}", ty.name()))
            .collect();
        let is_template = self.one_in(4);
        let name = format!("{}_{number}", if is_template { "form" } else { "func" });
        let types: Vec<Type> = parameters.iter().map(|&(_, ty)| ty).collect();
        let attribute = self.pick(&["static ", "static ", "[[gnu::noinline]] static ", "static inline ", ""]);
        let head = format!("{} {name}({})", returns.name(), shown.join(", "));
        self.line("");
        if is_template {
            // Called with constants of its own.
            self.line("template <int32_t K>");
            let outer = self.variables.len();
            self.variables.push(Variable {
                name: "K".into(),
                ty: Type::I32,
                is_constant: true,
            });
            self.body(&format!("static {head}"), &parameters, returns, None);
            self.variables.truncate(outer);
            let constants: Vec<u32> = (0..2).map(|_| self.below(40)).collect();
            for constant in constants {
                self.callable.push(Callable {
                    call: format!("{name}<{constant}>"),
                    parameters: types.clone(),
                    returns,
                });
            }
            return;
        }
        let recursive = self.one_in(4).then_some(name.as_str());
        self.body(&format!("{attribute}{head}"), &parameters, returns, recursive);
        let callable = Callable {
            call: name.clone(),
            parameters: types,
            returns,
        };
        self.callable.push(callable.clone());
        if self.one_in(3) {
            // Through a pointer that the compiler does not know.
            let types: Vec<&str> = callable.parameters.iter().map(|ty| ty.name()).collect();
            let ty = format!("{} (*volatile pointer_{number})({})", returns.name(), types.join(", "));
            self.line(&format!("static {ty} = {name};"));
            self.callable.push(Callable {
                call: format!("pointer_{number}"),
                ..callable
            });
        }
    }

    /// A function, which calls itself by the name of `recursive`.
    fn body(&mut self, head: &str, parameters: &[(String, Type)], returns: Type, recursive: Option<&str>) {
        let outer = self.variables.len();
        self.variables.extend(parameters.iter().map(|(name, ty)| Variable {
            name: name.clone(),
            ty: *ty,
            is_constant: false,
        }));
        self.left = 8 + self.below(MAX_STATEMENTS - 8);
        self.line(&format!("{head} {{"));
        if let Some(call) = recursive {
            self.recursion(call, parameters);
        }
        while self.left > 0 {
            self.block(Around::function(returns));
        }
        let value = self.value(returns, 2);
        self.line(&format!("    return {value};"));
        self.line("}");
        self.variables.truncate(outer);
    }

    /// A call of the function itself, a few deep. What is thrown through it ends recursion for good.
    fn recursion(&mut self, call: &str, parameters: &[(String, Type)]) {
        let arguments: Vec<String> = parameters.iter().map(|&(_, ty)| self.value(ty, 2)).collect();
        let condition = self.condition(1);
        self.line("    static int32_t depth;");
        self.line(&format!("    if (depth < 4 && {condition}) {{"));
        self.line("        ++depth;");
        self.line(&format!("        mix({call}({}));", arguments.join(", ")));
        self.line("        --depth;");
        self.line("    }");
    }

    fn main(&mut self) {
        let callable = self.callable.last().cloned();
        let Callable { call, parameters, .. } = callable.expect("a function was made");
        let arguments: Vec<String> = parameters
            .iter()
            .map(|ty| format!("to<{}>(round)", ty.name()))
            .collect();
        let mut fill = String::new();
        let mut mix = String::new();
        for Array { name, ty, .. } in &self.arrays {
            fill += &format!(
                "    for (auto &element : {name}) element = to<{}>(next_random());\n",
                ty.name()
            );
            mix += &format!("    for (auto element : {name}) mix(element);\n");
        }
        for Variable { name, .. } in &self.variables {
            mix += &format!("    mix({name});\n");
        }
        self.text += &MAIN
            .replace("CALL", &format!("{call}({})", arguments.join(", ")))
            .replace("FILL", fill.trim_end())
            .replace("MIX", mix.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_programs() {
        assert_eq!(program(7), program(7));
        assert_ne!(program(7), program(8));
    }

    #[test]
    fn everything_is_made() {
        let all: String = (0..60).map(program).collect();
        let made = [
            "throw Special(",
            "throw Other{",
            "throw;",
            "catch (int32_t",
            "guard_",
            "->visit(",
            ": Class_1 {",
            "template <int32_t K>",
            "pointer_",
            "auto l_",
            "++depth;",
            "switch (",
            "do {",
            "while (",
            "std::memmove(",
            "std::vector<",
            "gotos(",
            "calls(",
            "std::sqrt(",
            "break;",
            "continue;",
        ];
        for made in made {
            assert!(all.contains(made), "{made}");
        }
    }
}
