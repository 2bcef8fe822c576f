//! Single steps find planted leaks in every tier, and let their sound twins pass.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use lanework_leakage::plants::{self, Gives, Plant};
use lanework_leakage::traced::{Difference, Kind, compared, to_be_judged};

fn gives(difference: &Difference) -> Gives {
    match difference.kind {
        Kind::Way(_) => Gives::Way,
        Kind::Memory(_) => Gives::Memory,
        Kind::Division(_) => Gives::Division,
    }
}

/// Differences between runs on secrets whose bytes all differ.
fn differences(plant: &Plant) -> Option<Vec<Difference>> {
    let secrets =
        |case: usize| -> [u8; 16] { core::array::from_fn(|i| [0, 0x81, 0x3c, 255][case] ^ (i as u8 >> 3)) };
    let run = plant.run;
    let report = compared(plant.function, 4, secrets, |secret| run(secret), |secret| secret.to_vec())?;
    // Each plant was run and is not empty.
    assert!(report.cases == 3 && report.steps > 10, "{report:?}");
    Some(report.differences)
}

#[test]
fn traced_leaks_are_found_and_named() {
    if !to_be_judged("traced_leaks_are_found_and_named") {
        return;
    }
    let mut found = 0;
    for plant in plants::ALL {
        if !plants::runs(plant.tier) {
            eprintln!("skipped {}: this CPU has no {}", plant.function, plant.tier);
            continue;
        }
        let Some(differences) = differences(&plant) else { return };
        let says: Vec<String> = differences.iter().map(ToString::to_string).collect();
        if plant.gives == Gives::Nothing {
            assert!(differences.is_empty(), "{} is sound, and yet: {says:#?}", plant.function);
            continue;
        }
        let named = |d: &&Difference| gives(d) == plant.gives && d.place.is_in(plant.function);
        let difference = differences.iter().find(named);
        let difference =
            difference.unwrap_or_else(|| panic!("{}, {:?}: {says:#?}", plant.function, plant.gives));
        println!("{}: {difference}", plant.tier);
        found += 1;
    }
    println!("{found} planted leaks found, and named");
}
