//! The substitutions of set Z as circuits of functions of three bits, as data.
//!
//! Each is six gates of three inputs and four of two. Those four also add their result to a bit of the other word: ten
//! `vpternlog`. A SAT solver found them, and showed that five and four gates do not suffice.
#![forbid(unsafe_code)]

/// A function of three bits: x, y, z are numbers of wires, and bit 4x + 2y + z of the table is the result.
pub(super) struct Gate {
    pub(super) wires: [usize; 3],
    pub(super) table: i32,
}

/// Wires 0 to 3 are the input's bits, wire 4 + i is gate i.
pub(super) struct Circuit {
    pub(super) gates: [Gate; 6],
    /// Bit i of the output: functions of (the bit that it is added to, y, z); the first one's wire is given as 0.
    pub(super) outputs: [Gate; 4],
}

const fn gate(x: usize, y: usize, z: usize, table: i32) -> Gate {
    Gate { wires: [x, y, z], table }
}

/// The sum of x and the function of (y, z) whose table is the low half of `table`.
const fn sum(y: usize, z: usize, table: i32) -> Gate {
    Gate { wires: [0, y, z], table: table | (!table & 15) << 4 }
}

/// By row of the set.
pub(super) static CIRCUITS: [Circuit; 8] = [
    Circuit {
        gates: [
            gate(3, 2, 1, 0x48),
            gate(3, 1, 0, 0x8e),
            gate(2, 1, 0, 0xd6),
            gate(3, 2, 1, 0x64),
            gate(7, 6, 2, 0xb6),
            gate(7, 6, 3, 0x5e),
        ],
        outputs: [sum(8, 6, 0x6), sum(9, 0, 0x6), sum(8, 5, 0x9), sum(5, 4, 0x9)],
    },
    Circuit {
        gates: [
            gate(3, 2, 1, 0xd0),
            gate(2, 1, 0, 0x18),
            gate(3, 1, 0, 0x92),
            gate(3, 2, 1, 0xec),
            gate(7, 6, 0, 0x12),
            gate(8, 4, 1, 0xde),
        ],
        outputs: [sum(8, 3, 0x6), sum(7, 6, 0x9), sum(9, 0, 0x9), sum(5, 0, 0x6)],
    },
    Circuit {
        gates: [
            gate(3, 2, 0, 0x68),
            gate(4, 1, 0, 0xb6),
            gate(4, 2, 1, 0x5e),
            gate(6, 3, 1, 0x7e),
            gate(3, 2, 1, 0x2c),
            gate(8, 7, 0, 0x78),
        ],
        outputs: [sum(9, 3, 0x9), sum(8, 6, 0x9), sum(9, 7, 0x6), sum(5, 2, 0x9)],
    },
    Circuit {
        gates: [
            gate(3, 1, 0, 0x1c),
            gate(4, 3, 2, 0xd6),
            gate(5, 4, 0, 0x58),
            gate(3, 2, 0, 0x84),
            gate(5, 4, 0, 0x42),
            gate(4, 2, 0, 0xc2),
        ],
        outputs: [sum(6, 1, 0x6), sum(7, 6, 0x6), sum(9, 1, 0x9), sum(8, 0, 0x9)],
    },
    Circuit {
        gates: [
            gate(2, 1, 0, 0x64),
            gate(4, 3, 1, 0x68),
            gate(4, 3, 2, 0x26),
            gate(6, 2, 1, 0x5e),
            gate(2, 1, 0, 0x6a),
            gate(8, 7, 0, 0xca),
        ],
        outputs: [sum(9, 6, 0x9), sum(6, 5, 0x9), sum(7, 5, 0xb), sum(8, 2, 0x6)],
    },
    Circuit {
        gates: [
            gate(3, 2, 1, 0x34),
            gate(3, 1, 0, 0xc6),
            gate(4, 1, 0, 0x84),
            gate(4, 2, 0, 0x58),
            gate(7, 2, 1, 0xa6),
            gate(8, 7, 4, 0x68),
        ],
        outputs: [sum(8, 6, 0x9), sum(8, 3, 0x6), sum(9, 7, 0x1), sum(9, 5, 0x6)],
    },
    Circuit {
        gates: [
            gate(3, 2, 1, 0x8c),
            gate(3, 1, 0, 0xf6),
            gate(5, 2, 0, 0x74),
            gate(6, 4, 3, 0xd6),
            gate(7, 5, 0, 0x36),
            gate(8, 6, 2, 0x84),
        ],
        outputs: [sum(8, 4, 0x6), sum(9, 3, 0x6), sum(6, 1, 0x6), sum(7, 0, 0x9)],
    },
    Circuit {
        gates: [
            gate(3, 1, 0, 0x72),
            gate(2, 1, 0, 0x86),
            gate(5, 3, 1, 0x68),
            gate(6, 3, 2, 0x68),
            gate(4, 2, 0, 0x9a),
            gate(8, 6, 2, 0x0e),
        ],
        outputs: [sum(9, 3, 0x9), sum(6, 5, 0xe), sum(8, 5, 0x6), sum(7, 1, 0x6)],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sbox::Sbox;

    #[test]
    fn circuits_are_the_substitutions() {
        for (circuit, row) in CIRCUITS.iter().zip(Sbox::Z.rows()) {
            for (x, &want) in row.iter().enumerate() {
                let mut wires: Vec<usize> = (0..4).map(|i| x >> i & 1).collect();
                let of = |gate: &Gate, x: usize, y: usize, z: usize| {
                    gate.table as usize >> (4 * x + 2 * y + z) & 1
                };
                for gate in &circuit.gates {
                    let [x, y, z] = gate.wires.map(|w| wires[w]);
                    wires.push(of(gate, x, y, z));
                }
                for (i, gate) in circuit.outputs.iter().enumerate() {
                    let [_, y, z] = gate.wires.map(|w| wires[w]);
                    for old in 0..2 {
                        assert_eq!(of(gate, old, y, z), old ^ usize::from(want) >> i & 1, "bit {i} of {x}");
                    }
                }
            }
        }
    }
}
