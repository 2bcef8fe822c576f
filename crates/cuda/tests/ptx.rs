//! PTX executed on this CPU, by the public interface: hand-written programs, each with one fault, and the same without it.
#![cfg(feature = "ptx")]

use lanework_cuda::{Control, Device, Emulation, Error, Grid, Image, Limit, Order, args, selftest};

fn device(order: Order) -> (Device, Control) {
    Device::ptx(Emulation { order, ..Emulation::default() })
}

/// A program of one kernel `planted`: `%rd1` is a buffer of 64 words, their thread numbers; `%rd2` one of 64 words that nothing has
/// written, and `%rd7` the thread's own there; `%r1` the thread, `%r0` zero, `%r2` the thread's four bytes of shared memory.
fn program(body: &str) -> Image {
    let text = format!(
        ".version 9.0\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 room[];\n\
         .extern .func (.param .b64 func_retval0) malloc\n(\n.param .b64 malloc_param_0\n)\n;\n\
         .global .align 2 .b8 table[8] = {{1, 2, 3}};\n.extern .func free\n(\n.param .b64 free_param_0\n)\n;\n\
         .visible .entry planted(\n.param .u64 planted_param_0,\n.param .u64 planted_param_1\n)\n{{\n\
         .local .align 8 .b8 own[16];\n.reg .pred %p<9>;\n.reg .b16 %rs<9>;\n.reg .b32 %r<19>;\n.reg .b64 %rd<19>;\n\
         ld.param.u64 %rd1, [planted_param_0];\nld.param.u64 %rd2, [planted_param_1];\nmov.u32 %r1, %tid.x;\n\
         mov.u32 %r0, 0;\nmov.u32 %r2, room;\nmad.lo.s32 %r2, %r1, 4, %r2;\n\
         mul.wide.u32 %rd7, %r1, 4;\nadd.s64 %rd7, %rd2, %rd7;\n{body}\nret;\n}}\n\0"
    );
    Image::new("planted", Box::leak(text.into_bytes().into_boxed_slice()))
}

fn run_in(body: &str, threads: u32, shared: u32, order: Order) -> Result<Vec<u32>, Error> {
    let (device, _) = device(order);
    run_on(&device, body, threads, shared)
}

fn run_on(device: &Device, body: &str, threads: u32, shared: u32) -> Result<Vec<u32>, Error> {
    device.limit(Limit::Heap, 1000)?;
    let kernel = device.module(&program(body))?.kernel("planted")?;
    let (words, unwritten) = (device.buffer::<u32>(64)?, device.buffer::<u32>(64)?);
    let stream = device.stream()?;
    stream.put(&(0..64).collect::<Vec<u32>>(), &words, 0)?;
    let grid = Grid { blocks: 1, threads, shared };
    // SAFETY: these are its arguments, and this machine checks every access.
    unsafe { stream.launch(&kernel, grid, args![&words, &unwritten])? };
    stream.get(&words, 0..64)
}

/// The fault of a program's two warps, the same in every order of turns.
fn fault(body: &str, expected: &str) {
    fault_in(body, 64, 256, expected);
}

fn fault_in(body: &str, threads: u32, shared: u32, expected: &str) {
    for order in [Order::Forward, Order::Reverse, Order::Shuffled(9)] {
        match run_in(body, threads, shared, order) {
            Err(Error::Fault(failure)) => {
                let text = failure.text;
                assert!(text.contains(expected), "{order:?}, {body}: {text}");
                assert!(text.starts_with("planted, line ") && text.contains(", block 0"), "{text}");
            }
            other => panic!("{order:?}, {body}: {other:?}"),
        }
    }
}

/// What it does in every order of turns.
fn right(body: &str) -> Vec<u32> {
    let [one, two, three] = [Order::Forward, Order::Reverse, Order::Shuffled(9)]
        .map(|order| run_in(body, 64, 256, order).unwrap_or_else(|e| panic!("{order:?}, {body}: {e}")));
    assert!(one == two && two == three);
    one
}

#[test]
fn the_self_test_passes_in_every_order() {
    for order in [Order::Forward, Order::Reverse, Order::Shuffled(1), Order::Shuffled(77)] {
        let (device, control) = device(order);
        for row in selftest(&device).unwrap() {
            assert_eq!(row.result, Ok(()), "{} in {order:?}", row.what);
        }
        let launched = control.launched();
        assert!(launched.iter().any(|l| l.kernel == "lanework_warps" && l.left == 0 && l.collectives > 0));
        assert!(control.freed().iter().filter(|freed| freed.secret).all(|freed| freed.zero));
        assert_eq!(control.in_use(), 0);
        assert_eq!(device.card().name, "PTX executed on this CPU");
    }
}

#[test]
fn a_fault_names_the_kernel_the_line_and_the_thread() {
    let Err(Error::Fault(failure)) = run_in("ld.global.u32 %r3, [%rd1+256];", 64, 0, Order::Forward) else {
        panic!("it went through")
    };
    assert_eq!(
        failure.text,
        "planted, line 34 `ld.global.u32 %r3, [%rd1+256];`, block 0, thread 0: 4 bytes at 256 of a buffer of 256 bytes \
         end 4 beyond it"
    );
}

#[test]
fn accesses_outside_and_unaligned_are_found() {
    fault("ld.global.u32 %r3, [%rd1+254];", "are not aligned");
    fault("ld.global.v2.u32 {%r3, %r4}, [%rd1+4];", "8 bytes at");
    fault("ld.global.u32 %r3, [%rd1+-4];", "in no buffer");
    fault("mov.u64 %rd3, 64;\nst.global.u32 [%rd3], %r1;", "0x40 is in no buffer");
    fault("ld.u8 %r3, [%rd1+256];", "end 1 beyond it");
    fault(
        "st.shared.u32 [%r2+4], %r1;",
        "thread 63: its 4 bytes at 256 of shared memory end beyond the block's 256",
    );
    fault("ld.shared.u32 %r3, [%r0];", "at -1024 of shared memory");
    fault("st.shared.u32 [%r2+2], %r1;", "are not aligned");
    fault("mov.u64 %rd3, own;\nst.local.u32 [%rd3+16], %r1;", "are not in the thread's own 16");
    fault("mov.u64 %rd3, own;\nst.local.u32 [%rd3+-4], %r1;", "are not in the thread's own 16");
    // `own` is aligned to eight bytes, a table to two: places that happen to be better are not relied on.
    fault("mov.u64 %rd3, own;\nst.local.v4.u32 [%rd3], {%r1, %r1, %r1, %r1};", "its 16 bytes at");
    fault("mov.u64 %rd3, table;\nld.global.nc.u32 %r3, [%rd3];", "its 4 bytes at");
    fault("mov.u64 %rd3, table;\nld.global.nc.u8 %r3, [%rd3+-1];", "in no buffer");
    fault("mov.u64 %rd3, table;\nld.global.nc.u8 %r3, [%rd3+8];", "end 1 beyond it");
    right(
        "mov.u64 %rd3, table;\nld.global.nc.u16 %rs1, [%rd3];\nmov.u64 %rd3, own;\nst.local.u64 [%rd3+8], %rd3;",
    );
    right(
        "st.shared.u32 [%r2], %r1;\nmov.u64 %rd3, own;\nst.local.u32 [%rd3+12], %r1;\nld.global.u32 %r3, [%rd1+252];",
    );
}

#[test]
fn values_that_nothing_has_written_are_found_where_they_matter() {
    let stored = |body: &str| {
        format!("{body}\nmul.wide.u32 %rd4, %r1, 4;\nadd.s64 %rd4, %rd1, %rd4;\nst.global.u32 [%rd4], %r3;")
    };
    let own = "mov.u64 %rd3, own;";
    for (load, sixteen) in [
        ("ld.global.u32 %r3, [%rd7];", "st.global.u8 [%rd7], %r1;\nst.global.u8 [%rd7+1], %r1;"),
        ("ld.shared.u32 %r3, [%r2];", "cvt.u16.u32 %rs1, %r1;\nst.shared.u16 [%r2], %rs1;"),
        (
            &format!("{own}\nld.local.u32 %r3, [%rd3];"),
            &format!("{own}\ncvt.u16.u32 %rs1, %r1;\nst.local.u16 [%rd3], %rs1;"),
        ),
        ("add.s32 %r3, %r4, 1;", "mov.u32 %r4, 0;"),
    ] {
        let found = "it stores a value that nothing has written";
        fault(&stored(load), found);
        // Two of four bytes are there: the others must not be used.
        if load.starts_with("add") {
            right(&stored(&format!("{sixteen}\n{load}")));
            continue;
        }
        fault(&stored(&format!("{sixteen}\n{load}")), found);
        right(&stored(&format!("{sixteen}\n{load}\nand.b32 %r3, %r3, 65535;")));
        right(&stored(&format!(
            "{sixteen}\n{load}\nshf.r.wrap.b32 %r3, %r3, %r4, 0;\nshl.b32 %r3, %r3, 16;"
        )));
        fault(&stored(&format!("{sixteen}\n{load}\nadd.s32 %r3, %r3, %r1;\nshr.u32 %r3, %r3, 15;")), found);
        right(load);
        fault(
            &format!("{load}\nsetp.eq.s32 %p1, %r3, 1;\n@%p1 bra $L;\n$L:"),
            "depends on a value that nothing",
        );
        fault(
            &format!(
                "{load}\nmul.wide.u32 %rd5, %r3, 4;\nadd.s64 %rd5, %rd5, %rd1;\nld.global.u32 %r5, [%rd5];"
            ),
            "its address comes from",
        );
        fault(
            &format!("{load}\nredux.sync.or.b32 %r5, %r1, %r3;"),
            "its mask of lanes is a value that nothing",
        );
        fault(&format!("{load}\nbar.sync %r3;"), "its barrier is a value that nothing");
        fault(
            &format!("{load}\nmov.u32 %r6, -1;\nshfl.sync.idx.b32 %r5|%p1, %r1, %r3, %r6, %r6;"),
            "its lane comes from",
        );
        // From another lane.
        let passed = "mov.u32 %r6, -1;\nmov.u32 %r7, 31;\nmov.u32 %r8, 1;\nshfl.sync.bfly.b32 %r3|%p1, %r3, %r8, %r7, %r6;";
        fault(&stored(&format!("{load}\n{passed}")), found);
    }
    fault("@%p3 bra $L;\n$L:", "depends on a value that nothing has written");
    // Written on one path alone.
    let part = "setp.lt.u32 %p1, %r1, 7;\n@%p1 bra $L;\nmov.u32 %r4, 3;\n$L:\nadd.s32 %r3, %r4, 1;";
    fault(&stored(part), "thread 0: it stores a value");
    right(&stored(&format!("mov.u32 %r4, 2;\n{part}")));
    // A selection needs only the value that it takes, an "and" with zero needs none, and what was stored is known.
    right(&stored(
        "setp.ge.u32 %p1, %r1, 0;\nselp.b32 %r3, %r1, %r4, %p1;\nand.b32 %r5, %r4, %r0;\nadd.s32 %r3, %r3, %r5;",
    ));
    right(&stored("st.global.u32 [%rd7], %r0;\nld.global.u32 %r3, [%rd7];"));
    // An address that becomes a generic one is as unknown as it was.
    let cast = "cvta.local.u64 %rd3, %rd5;\nsetp.eq.s64 %p1, %rd3, 0;\n@%p1 bra $L;\n$L:";
    fault(cast, "depends on a value that nothing has written");
    right(&format!("mov.u64 %rd5, own;\n{cast}"));
}

#[test]
fn races_are_found_in_every_order() {
    let none = "are in no order";
    // Neighbours' words: nothing between, a barrier of the warp, one of the block.
    let exchange = |between: &str| {
        format!(
            "st.shared.u32 [%r2], %r1;\n{between}\nxor.b32 %r3, %r1, 32;\nshl.b32 %r3, %r3, 2;\nmov.u32 %r4, room;\n\
             add.s32 %r4, %r4, %r3;\nld.shared.u32 %r5, [%r4];\nmul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd3, %rd1, %rd3;\n\
             st.global.u32 [%rd3], %r5;"
        )
    };
    for between in ["", "bar.warp.sync -1;"] {
        for (order, expected) in [
            // The first warp reads before the second has written, and the values are missing.
            (Order::Forward, "it stores a value that nothing has written"),
            (Order::Reverse, "it stores a value that nothing has written"),
        ] {
            let Err(Error::Fault(failure)) = run_in(&exchange(between), 64, 256, order) else {
                panic!("it went through")
            };
            assert!(failure.text.contains(expected), "{}", failure.text);
        }
        // With values there before, the race itself.
        let filled = format!("st.shared.u32 [%r2], %r0;\nbar.sync 0;\n{}", exchange(between));
        fault(&filled, none);
    }
    assert_eq!(right(&exchange("bar.sync 0;")), (0..64).map(|i| i ^ 32).collect::<Vec<u32>>());
    fault("st.shared.u32 [%r2], %r0;\nbar.sync 0;\nmov.u32 %r4, room;\nst.shared.u32 [%r4], %r1;", none);
    // Lanes of one warp.
    let lanes = |between: &str| {
        format!(
            "st.shared.u32 [%r2], %r1;\n{between}\nxor.b32 %r3, %r1, 1;\nshl.b32 %r3, %r3, 2;\nmov.u32 %r4, room;\n\
             add.s32 %r4, %r4, %r3;\nld.shared.u32 %r5, [%r4];"
        )
    };
    fault(&lanes(""), "its read of shared byte");
    fault(&lanes("mov.u32 %r6, -1;\nredux.sync.or.b32 %r7, %r1, %r6;"), "and a write by thread");
    right(&lanes("bar.warp.sync -1;"));
    // A read before another's write.
    let late = "st.shared.u32 [%r2], %r1;\nbar.sync 0;\nld.shared.u32 %r5, [%r2];\nBETWEEN\nxor.b32 %r3, %r1, 33;\n\
                shl.b32 %r3, %r3, 2;\nmov.u32 %r4, room;\nadd.s32 %r4, %r4, %r3;\nst.shared.u32 [%r4], %r1;";
    fault(&late.replace("BETWEEN", ""), "are in no order");
    right(&late.replace("BETWEEN", "bar.sync 0;"));
    // Atomic operations, with each other and with a plain read.
    let atomic = "setp.ne.s32 %p1, %r1, 0;\nmov.u32 %r4, room;\n@%p1 bra $L;\nst.shared.u32 [%r4], %r0;\n$L:\nbar.sync 0;\n\
                  atom.shared.xor.b32 %r5, [%r4], %r1;";
    right(atomic);
    fault(&format!("{atomic}\nld.shared.u32 %r6, [%r4];"), "an atomic operation");
    right(&format!("{atomic}\nbar.sync 0;\nld.shared.u32 %r6, [%r4];"));
}

#[test]
fn races_on_device_memory_are_found_in_every_order() {
    // The word of thread %r1 ^ 33, which is in the other warp.
    let other = "xor.b32 %r3, %r1, 33;\nmul.wide.u32 %rd3, %r3, 4;\nadd.s64 %rd3, %rd2, %rd3;";
    let exchange =
        |between: &str| format!("{other}\nst.global.u32 [%rd7], %r1;\n{between}\nld.global.u32 %r4, [%rd3];");
    fault(&exchange(""), "of device byte");
    fault(&exchange("bar.warp.sync -1;"), "are in no order");
    right(&exchange("bar.sync 0;"));
    // Lanes of a warp, all threads, and a read before a write.
    fault(&exchange("").replace("33", "1"), "are in no order");
    right(&exchange("bar.warp.sync -1;").replace("33", "1"));
    fault("st.global.u32 [%rd2], %r1;", "and a write by thread");
    fault(&format!("{other}\nld.global.u32 %r4, [%rd7];\nst.global.u32 [%rd3], %r1;"), "are in no order");
    // Bytes of a word are places of their own where bytes are stored, and reads do not race.
    let bytes = "add.s64 %rd3, %rd2, 3;\ncvt.u64.u32 %rd4, %r1;\nadd.s64 %rd4, %rd2, %rd4;\nst.global.u8 [%rd4], %r1;";
    right(bytes);
    fault(&format!("{bytes}\nld.global.u8 %r3, [%rd3];"), "are in no order");
    right("ld.global.u32 %r3, [%rd1];");
}

/// Two blocks, the first of which does one thing and the second the other.
fn between_blocks(first: &str, second: &str, order: Order) -> Result<(), Error> {
    let body = format!(
        "mov.u32 %r3, %ctaid.x;\nsetp.ne.s32 %p1, %r3, 0;\n@%p1 bra $SECOND;\n{first}\nbra.uni $END;\n$SECOND:\n{second}\n$END:"
    );
    let (device, _) = device(order);
    let kernel = device.module(&program(&body))?.kernel("planted")?;
    let (words, unwritten) = (device.buffer::<u32>(64)?, device.buffer::<u32>(64)?);
    let stream = device.stream()?;
    stream.put(&(0..64).collect::<Vec<u32>>(), &words, 0)?;
    let grid = Grid { blocks: 2, threads: 32, shared: 256 };
    // SAFETY: these are its arguments, and this machine checks every access.
    unsafe { stream.launch(&kernel, grid, args![&words, &unwritten])? };
    stream.finish()
}

#[test]
fn blocks_of_a_launch_are_in_no_order() {
    let (write, read, elsewhere) =
        ("st.global.u32 [%rd7], %r1;", "ld.global.u32 %r4, [%rd7];", "st.global.u32 [%rd7+128], %r1;");
    for order in [Order::Forward, Order::Reverse, Order::Shuffled(9)] {
        for (first, second) in
            [(write, read), (read, write), (write, write), (&format!("{read}\n{write}"), read)]
        {
            // A barrier orders its block alone.
            for second in [second.to_owned(), format!("bar.sync 0;\n{second}")] {
                match between_blocks(first, &second, order) {
                    Err(Error::Fault(failure)) => {
                        let text = failure.text;
                        assert!(text.contains(" block") && text.ends_with("are in no order"), "{text}");
                    }
                    other => panic!("{order:?}, {first}, {second}: {other:?}"),
                }
            }
        }
        for (first, second) in [(write, elsewhere), (read, read), (&format!("{write}\n{read}"), elsewhere)] {
            between_blocks(first, second, order).unwrap();
        }
    }
}

#[test]
fn copies_on_their_way_are_not_there() {
    // Each thread copies sixteen bytes to its own place, at %r4; %r5 is the other warp's.
    let start = "shl.b32 %r3, %r1, 4;\nmov.u32 %r4, room;\nadd.s32 %r4, %r4, %r3;\nxor.b32 %r5, %r4, 512;\n\
                 st.shared.u32 [%r4], %r0;\nbar.sync 0;\nand.b32 %r3, %r3, 255;\ncvt.u64.u32 %rd3, %r3;\n\
                 add.s64 %rd3, %rd1, %rd3;\ncp.async.cg.shared.global [%r4], [%rd3], 16;\n";
    let odd = "and.b32 %r3, %r1, 1;\nsetp.eq.s32 %p1, %r3, 0;\n";
    let stored = "mul.wide.u32 %rd4, %r1, 4;\nadd.s64 %rd4, %rd1, %rd4;\nbar.sync 0;\n\
                  st.global.u32 [%rd4], %r3;";
    let (commit, read) = ("cp.async.commit_group;\n", "ld.shared.u32 %r3, [%r4];\n");
    let (wait0, wait1) = ("cp.async.wait_group 0;\n", "cp.async.wait_group 1;\n");
    let missing = "it stores a value that nothing has written";
    let copied = run_in(&format!("{start}{commit}{wait0}{read}{stored}"), 64, 1024, Order::Forward).unwrap();
    assert_eq!(copied, (0..64).map(|i| 4 * i % 64).collect::<Vec<u32>>());
    // Too early, with one group to come, and outside of every group. A thread counts its own groups alone.
    fault_in(&format!("{start}{commit}{read}{wait0}{stored}"), 64, 1024, missing);
    fault_in(&format!("{start}{commit}{wait1}{read}{stored}"), 64, 1024, missing);
    fault_in(&format!("{start}{wait0}{read}{stored}"), 64, 1024, missing);
    let apart = format!("{start}{odd}@%p1 {commit}@!%p1 {commit}");
    fault_in(&format!("{apart}{wait1}{read}{stored}"), 64, 1024, missing);
    run_in(&format!("{apart}{wait0}{read}{stored}"), 64, 1024, Order::Forward).unwrap();
    // The other warp reads what was there before, before the wait.
    let other = "ld.shared.u32 %r3, [%r5];\n";
    fault_in(&format!("{start}{commit}{other}bar.sync 0;\n{wait0}"), 64, 1024, "are in no order");
}

#[test]
fn what_is_left_in_shared_memory_is_counted_by_its_known_bits() {
    let (device, control) = device(Order::Forward);
    // One byte of four is there, and shifted by half a byte.
    let body = "mov.u32 %r3, 240;\nst.global.u8 [%rd7], %r3;\nld.global.u32 %r3, [%rd7];\nshl.b32 %r3, %r3, 4;\n\
                st.shared.u32 [%r2], %r3;";
    run_on(&device, body, 32, 256).unwrap();
    assert_eq!(control.launched()[0].left, 32);
}

/// The first warp writes, the second reads: named barriers order them in one direction.
fn handed(first: &str, second: &str) -> String {
    format!(
        "setp.gt.u32 %p1, %r1, 31;\nmov.u32 %r4, room;\n@%p1 bra $READ;\nst.shared.u32 [%r2], %r1;\n{first}\nbra.uni $END;\n\
         $READ:\n{second}\nld.shared.u32 %r5, [%r2+-128];\n$END:"
    )
}

#[test]
fn named_barriers_order_what_they_say() {
    right(&handed("bar.arrive 1, 64;", "bar.sync 1, 64;"));
    right(&handed("bar.sync 1, 64;", "bar.sync 1, 64;"));
    // A write after the arrival is not before.
    fault(&handed("bar.arrive 1, 64;\nst.shared.u32 [%r2], %r0;", "bar.sync 1, 64;"), "are in no order");
    // Who goes on has not waited for what the warp's other lanes wrote.
    let neighbour = "xor.b32 %r3, %r2, 4;\nld.shared.u32 %r5, [%r3];";
    fault(&handed(&format!("bar.arrive 1, 64;\n{neighbour}"), "bar.sync 1, 64;"), "are in no order");
    right(&handed(&format!("bar.warp.sync -1;\nbar.arrive 1, 64;\n{neighbour}"), "bar.sync 1, 64;"));
    fault(&handed("bar.arrive 2, 64;", "bar.sync 1, 64;"), "has 32 of 64 threads, and nothing else can come");
    fault(&handed("bar.arrive 1, 96;", "bar.sync 1, 64;"), "and for");
    fault(&handed("bar.arrive 1, 64;\nbar.arrive 1, 64;", "bar.sync 1, 64;"), "barrier 1");
    fault(&handed("bar.sync 1, 40;", "bar.sync 1, 40;"), "a barrier of 40 threads");
    fault(&handed("bar.arrive 1, 32;", "bar.sync 1, 64;"), "barrier 1 is ");
    fault("bar.sync 16;", "barrier 16, of 16");
    // Two of three warps would complete it.
    let second = "setp.gt.u32 %p1, %r1, 63;\n@%p1 bra $END;\nbar.sync 1, 96;";
    let twice = handed("bar.arrive 1, 96;\nbar.sync 1, 96;", second);
    fault_in(&twice, 96, 384, "barrier 1 gets warp 0 twice before it is complete");
    fault("bar.sync %r1, 64;", "its barrier is");
}

#[test]
fn parts_of_warps_are_found_where_all_must_be() {
    let odd = "and.b32 %r3, %r1, 1;\nsetp.eq.s32 %p1, %r3, 0;\nmov.u32 %r6, -1;\n@%p1 bra $L;\n";
    fault(&format!("{odd}bar.sync 0;\n$L:"), "a part of warp");
    fault(&format!("{odd}bar.warp.sync -1;\n$L:"), "lanes aaaaaaaa of ffffffff");
    fault(&format!("{odd}vote.sync.ballot.b32 %r5, %p1, %r6;\n$L:"), "a part of warp");
    fault(&format!("{odd}redux.sync.or.b32 %r5, %r1, %r6;\n$L:"), "a part of warp");
    fault(&format!("{odd}shfl.sync.bfly.b32 %r5|%p2, %r1, %r6, %r6, %r6;\n$L:"), "a part of warp");
    // Paths meet again, and one path's own lanes may act together.
    right(&format!("{odd}mov.u32 %r5, 1;\n$L:\nbar.sync 0;"));
    right(&format!("{odd}mov.u32 %r6, 0xaaaaaaaa;\nredux.sync.or.b32 %r5, %r1, %r6;\n$L:"));
    let gone = "setp.eq.s32 %p1, %r1, 40;\nmov.u32 %r6, -1;\n@%p1 ret;\n";
    fault(&format!("{gone}redux.sync.or.b32 %r5, %r1, %r6;"), "and 00000100 have ended");
    fault(&format!("{gone}bar.sync 0;"), "have ended");
    let warp = "setp.gt.u32 %p1, %r1, 31;\n@%p1 ret;\n";
    for order in [Order::Forward, Order::Reverse, Order::Shuffled(1)] {
        let found = run_in(&format!("{warp}bar.sync 0;"), 64, 256, order);
        let Err(Error::Fault(failure)) = found else { panic!("{found:?}") };
        assert!(
            failure.text.contains("have ended") || failure.text.contains("nothing else can come"),
            "{failure:?}"
        );
    }
}

#[test]
fn the_heap_has_its_limit_and_refuses_what_it_did_not_give() {
    let call = |bytes: u32| {
        format!(
            "{{\n.param .b64 param0;\nst.param.b64 [param0+0], {bytes};\n.param .b64 retval0;\ncall.uni (retval0),\nmalloc,\n\
             (\nparam0\n);\nld.param.b64 %rd3, [retval0+0];\n}}\n"
        )
    };
    let free = "{\n.param .b64 param0;\nst.param.b64 [param0+0], %rd3;\ncall.uni\nfree,\n(\nparam0\n);\n}\n";
    let store = "setp.eq.s64 %p1, %rd3, 0;\nselp.u32 %r3, 1, 0, %p1;\nmul.wide.u32 %rd4, %r1, 4;\nadd.s64 %rd4, %rd1, %rd4;\n\
                 st.global.u32 [%rd4], %r3;";
    // 1,000 bytes are room for fifteen threads' 64, whichever those are.
    for order in [Order::Forward, Order::Reverse] {
        let refused = run_in(&format!("{}{store}", call(64)), 64, 0, order).unwrap();
        assert_eq!(refused.iter().sum::<u32>(), 64 - 15);
        assert_eq!(refused[0] == 0, order == Order::Forward);
    }
    assert_eq!(right(&format!("{}st.u64 [%rd3], %rd1;\n{free}{store}", call(8))).iter().sum::<u32>(), 0);
    fault(&format!("{}st.u64 [%rd3+8], %rd1;", call(8)), "end 8 beyond it");
    fault(&format!("{}{free}{free}", call(8)), "which malloc did not return");
    fault(&format!("{}{free}ld.u64 %rd5, [%rd3];", call(8)), "in no buffer");
    fault(&format!("add.s64 %rd3, %rd1, 0;\n{free}"), "which malloc did not return");
}

#[test]
fn unknown_forms_are_refused_by_name_before_anything_runs() {
    for (body, expected) in [
        ("add.f32 %r3, %r1, %r0;", "arithmetic of type 'f32' is not executed"),
        ("popc.b32 %r3, %r1;", "the instruction 'popc.b32' is not executed"),
        ("atom.global.add.u32 %r3, [%rd1], %r1;", "'atom.global.add.u32' is not executed"),
        ("barrier.sync 0;", "'barrier.sync' is not executed"),
        ("add.s32 %r3, %r1, %r77;", "the name '%r77' is unknown"),
        ("add.s32 %r3, %r1, %rd1;", "'%rd1' has 64 bits, not 32"),
        ("bra $NOWHERE;", "the label '$NOWHERE' is unknown"),
        ("$L:\n$L:", "is there twice"),
        ("mov.u32 %r3, %smid;", "the name '%smid' is unknown"),
        ("mov.u32 %r3, 010;", "the name '010' is unknown"),
        ("@%p1 bra.uni $L;\n$L:", "'bra.uni' is not executed"),
        (".file 1;", "the directive '.file' is not executed"),
        ("}", "the directive 'ret' is not executed"),
        ("call.uni printf, (%r1);", "a call of 'printf' is not executed"),
        ("ld.global.s8 %r3, [%rd1];", "'ld.global.s8' is not executed"),
    ] {
        match run_in(body, 64, 0, Order::Forward) {
            Err(Error::Unavailable(why)) => assert!(why.to_string().contains(expected), "{body}: {why}"),
            other => panic!("{body}: {other:?}"),
        }
    }
}

#[test]
fn shared_memory_over_the_limit_and_other_arguments_are_refused() {
    let found = run_in("", 64, 100 << 10, Order::Forward);
    assert!(
        matches!(&found, Err(Error::Shape(why)) if why.contains("the device allows 101376")),
        "{found:?}"
    );
    assert!(matches!(run_in("", 2000, 0, Order::Forward), Err(Error::Shape(_))));
    let (device, _) = device(Order::Forward);
    let module = device.module(&program("")).unwrap();
    assert!(matches!(module.kernel("other"), Err(Error::NoKernel { .. })));
    let (kernel, stream) = (module.kernel("planted").unwrap(), device.stream().unwrap());
    let words = device.buffer::<u32>(4).unwrap();
    let grid = Grid { blocks: 1, threads: 32, shared: 0 };
    // SAFETY: this machine compares arguments with the kernel's, and refuses these.
    let found = unsafe {
        [stream.launch(&kernel, grid, args![&words]), stream.launch(&kernel, grid, args![&words, 5u32])]
    };
    for (found, expected) in
        found.into_iter().zip(["takes 2 arguments but gets 1", "takes 8 bytes as argument 1 but gets 4"])
    {
        assert!(matches!(&found, Err(Error::Shape(why)) if why.contains(expected)), "{found:?}");
    }
    let constant = Image::new("constant", b".version 9.0\n.const .b8 table[8];\n");
    let found = device.module(&constant).map(|_| ());
    assert!(
        matches!(&found, Err(Error::Unavailable(why)) if why.why.contains("'.const' is not")),
        "{found:?}"
    );
    let broken = Image::new("broken", b"\x50\xed\x55\xba\x01");
    let found = device.module(&broken).map(|_| ());
    assert!(matches!(&found, Err(Error::Unavailable(why)) if why.why.contains("ends within")), "{found:?}");
}
