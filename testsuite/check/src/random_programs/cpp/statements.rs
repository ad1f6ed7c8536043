//! Statements and blocks.

use super::Generator;
use super::values::{DEPTH, Type, Variable};

/// What surrounds a statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    /// The function's type.
    pub returns: Type,
    /// Number of loops around.
    pub loops: u32,
    /// Number of blocks around.
    pub blocks: u32,
    /// Whether `break` and `continue` mean a loop.
    pub breaks: bool,
}

impl Around {
    pub(super) fn function(returns: Type) -> Self {
        Self {
            returns,
            loops: 0,
            blocks: 0,
            breaks: false,
        }
    }

    fn block(self) -> Self {
        Self {
            blocks: self.blocks + 1,
            ..self
        }
    }

    fn in_loop(self) -> Self {
        Self {
            loops: self.loops + 1,
            breaks: true,
            ..self.block()
        }
    }

    fn in_switch(self) -> Self {
        Self {
            breaks: false,
            ..self.block()
        }
    }
}

const MAX_BLOCKS: u32 = 4;
const MAX_LOOPS: u32 = 3;
/// Loops within which a function may be called.
const MAX_LOOPS_OF_CALLS: u32 = 1;

impl Generator {
    /// Some statements, with a scope of their own.
    pub(super) fn block(&mut self, around: Around) {
        let variables = self.variables.len();
        self.indent += 1;
        let statements = 1 + self.below(4);
        for _ in 0..statements {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            self.statement(around);
        }
        self.indent -= 1;
        self.variables.truncate(variables);
    }

    /// `before {`, a block, `}`.
    fn nested(&mut self, before: &str, around: Around) {
        self.line(&format!("{before} {{"));
        self.block(around);
        self.line("}");
    }

    fn statement(&mut self, around: Around) {
        let is_flat = around.blocks >= MAX_BLOCKS;
        match self.below(if is_flat { 9 } else { 19 }) {
            0 => self.declare(),
            1 | 2 => self.assign(),
            3 | 4 => self.store(),
            5 => self.leave(around),
            6 | 7 => self.call(around),
            8 => self.memory(),
            9..=11 => self.branch(around),
            12 | 13 if around.loops < MAX_LOOPS => self.counted_loop(around),
            14 if around.loops < MAX_LOOPS => self.other_loop(around),
            15 => self.switch(around),
            16 => self.handle(around),
            17 => self.lambda(around),
            18 => self.array_loop(),
            _ => self.assign(),
        }
    }

    fn declare(&mut self) {
        let ty = self.ty();
        let value = self.value(ty, DEPTH);
        let name = self.name("v");
        self.line(&format!("{} {name} = {value};", ty.name()));
        self.variables.push(Variable {
            name,
            ty,
            is_constant: false,
        });
    }

    fn assign(&mut self) {
        let assignable: Vec<Variable> = self.variables.iter().filter(|v| !v.is_constant).cloned().collect();
        let Variable { name, ty, .. } = self.pick(&assignable);
        let value = self.value(ty, DEPTH);
        self.line(&format!("{name} = {value};"));
    }

    fn store(&mut self) {
        let array = self.an_array();
        let element = self.element(&array, 2);
        let value = self.value(array.ty, DEPTH);
        self.line(&format!("{element} = {value};"));
    }

    /// A return, a throw, or the next iteration, seldom.
    fn leave(&mut self, around: Around) {
        let condition = self.condition(1);
        let how = match self.below(if around.breaks { 5 } else { 3 }) {
            0 => format!("return {};", self.value(around.returns, 2)),
            1 => self.throw(),
            2 => {
                let number = self.value(Type::U64, 1);
                let name = self.name("guard");
                return self.line(&format!("Guard {name}({number});"));
            }
            3 => "break;".into(),
            _ => "continue;".into(),
        };
        self.line(&format!("if ({condition}) {how}"));
    }

    fn throw(&mut self) -> String {
        match self.below(4) {
            0 => format!("throw Error({});", self.value(Type::U64, 1)),
            1 => format!("throw Special({});", self.value(Type::U64, 1)),
            2 => format!("throw Other{{{}}};", self.value(Type::Double, 1)),
            _ => format!("throw {};", self.value(Type::I32, 1)),
        }
    }

    /// A call of a function that comes before in the source, so that calls end.
    fn call(&mut self, around: Around) {
        if around.loops > MAX_LOOPS_OF_CALLS || self.callable.is_empty() {
            return self.assign();
        }
        let callable = self.callable.clone();
        let callee = self.pick(&callable);
        let arguments: Vec<String> = callee.parameters.iter().map(|&ty| self.value(ty, 2)).collect();
        let call = format!("{}({})", callee.call, arguments.join(", "));
        match self.below(4) {
            0 => self.line(&format!("mix({call});")),
            1 => self.line(&format!("if ({call} == 0) mix(1);")),
            _ => {
                let name = self.name("v");
                self.line(&format!("{} {name} = {call};", callee.returns.name()));
                self.variables.push(Variable {
                    name,
                    ty: callee.returns,
                    is_constant: false,
                });
            }
        }
    }

    /// A memory operation whose length depends on data.
    fn memory(&mut self) {
        let [a, b, length] = [(); 3].map(|()| self.index(32, 1));
        let operation = match self.below(5) {
            0 => format!("std::memcpy(g_bytes + {a}, g_text + {b}, {length});"),
            1 => format!("std::memmove(g_bytes + {a}, g_bytes + {b}, {length});"),
            2 => format!("std::memset(g_bytes + {a}, {b}, {length});"),
            3 => format!("if (std::memcmp(g_bytes + {a}, g_text + {b}, {length}) == 0) mix(2);"),
            _ => format!("mix(std::strlen(g_text + {a}));"),
        };
        self.line(&operation);
    }

    fn branch(&mut self, around: Around) {
        let condition = self.condition(2);
        self.nested(&format!("if ({condition})"), around.block());
        if self.one_in(3) {
            let condition = self.condition(1);
            self.nested(&format!("else if ({condition})"), around.block());
        }
        if self.one_in(2) {
            self.nested("else", around.block());
        }
    }

    /// An upper bound of iterations, which the fewer the more loops are around.
    fn iterations(&mut self, around: Around) -> String {
        let most = [64, 16, 8][around.loops as usize];
        match self.below(3) {
            0 => (1 + self.below(most)).to_string(),
            _ => format!("int32_t({})", self.index(most, 1)),
        }
    }

    fn counted_loop(&mut self, around: Around) {
        let iterations = self.iterations(around);
        let name = self.name("i");
        self.variables.push(Variable {
            name: name.clone(),
            ty: Type::I32,
            is_constant: true,
        });
        let head = match self.below(3) {
            0 => format!("for (int32_t {name} = {iterations}; {name} >= 0; --{name})"),
            1 => format!("for (int32_t {name} = 0; {name} < {iterations}; {name} += 2)"),
            _ => format!("for (int32_t {name} = 0, n = {iterations}; {name} < n; ++{name})"),
        };
        self.nested(&head, around.in_loop());
        self.variables.pop();
    }

    fn other_loop(&mut self, around: Around) {
        let iterations = self.iterations(around);
        match self.below(3) {
            0 => {
                let name = self.name("n");
                let condition = self.condition(1);
                self.line(&format!("int32_t {name} = {iterations};"));
                self.nested(&format!("while (--{name} > 0 && {condition})"), around.in_loop());
            }
            1 => {
                let name = self.name("n");
                let condition = self.condition(1);
                self.line(&format!("int32_t {name} = {iterations};"));
                self.nested("do", around.in_loop());
                self.line(&format!("while (--{name} > 0 && {condition});"));
            }
            _ => {
                let ty = self.ty();
                let (vector, name) = (self.name("c"), self.name("e"));
                let value = self.value(ty, 2);
                self.line(&format!("std::vector<{}> {vector}({iterations}, {value});", ty.name()));
                self.variables.push(Variable {
                    name: name.clone(),
                    ty,
                    is_constant: false,
                });
                self.nested(&format!("for (auto &{name} : {vector})"), around.in_loop());
                self.variables.pop();
                self.line(&format!("for (auto {name} : {vector}) mix({name});"));
            }
        }
    }

    fn switch(&mut self, around: Around) {
        let of = self.pick(&[4, 8, 16]);
        let index = self.index(of, 2);
        self.line(&format!("switch ({index}) {{"));
        for case in 0..of {
            if self.one_in(3) {
                continue;
            }
            self.nested(&format!("case {case}:"), around.in_switch());
            if !self.one_in(4) {
                self.line("    break;");
            }
        }
        if self.one_in(2) {
            self.nested("default:", around.in_switch());
        }
        self.line("}");
    }

    fn handle(&mut self, around: Around) {
        self.nested("try", around.block());
        let mix = ["mix(caught.what());", "mix(caught);", "mix(caught.number);"];
        for (what, mix) in ["const Error &", "int32_t ", "Other "].iter().zip(mix) {
            if self.one_in(2) {
                self.line(&format!("catch ({what}caught) {{"));
                self.line(&format!("    {mix}"));
                self.block(around.block());
                if self.one_in(5) {
                    self.line("    throw;");
                }
                self.line("}");
            }
        }
        self.nested("catch (...)", around.block());
    }

    fn lambda(&mut self, around: Around) {
        let returns = self.ty();
        let (name, parameter) = (self.name("l"), self.name("p"));
        let ty = self.ty();
        self.line(&format!(
            "auto {name} = [&]({} {parameter}) -> {} {{",
            ty.name(),
            returns.name()
        ));
        self.variables.push(Variable {
            name: parameter,
            ty,
            is_constant: false,
        });
        let inner = Around {
            returns,
            breaks: false,
            ..around.block()
        };
        self.block(inner);
        let value = self.value(returns, 2);
        self.line(&format!("    return {value};"));
        self.variables.pop();
        self.line("};");
        for _ in 0..1 + self.below(2) {
            let argument = self.value(ty, 1);
            self.line(&format!("mix({name}({argument}));"));
        }
    }

    /// A loop over arrays that can be vectorised, with a condition at times.
    fn array_loop(&mut self) {
        let (to, from) = (self.an_array(), self.an_array());
        let length = to.len.min(from.len);
        let name = self.name("i");
        self.line(&format!("for (uint32_t {name} = 0; {name} < {length}; ++{name}) {{"));
        let scale = self.value(to.ty, 1);
        let ty = to.ty.name();
        let (to, from) = (
            format!("{}[{name}]", to.name),
            format!("to<{ty}>({}[{name}])", from.name),
        );
        let operation = self.pick(&["add", "sub", "mul"]);
        let value = format!("{operation}<{ty}>({to}, {operation}<{ty}>({from}, {scale}))");
        let statement = match self.below(3) {
            0 => format!("    {to} = {value};"),
            1 => format!("    if ({from} > {to}) {to} = {value};"),
            _ => format!("    {to} = {from} < {to} ? {from} : {value};"),
        };
        self.line(&statement);
        self.line("}");
    }
}
