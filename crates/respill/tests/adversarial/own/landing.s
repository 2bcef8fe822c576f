# A C++ function that catches, as GCC compiles it, with three spills: one before the call, one that only the handler reads, one in the
# handler. The second lives across a call that throws, and stays. What C++ calls around a handler takes no argument on the stack.
	.text
	.globl	thrower
	.type	thrower, @function
thrower:
.LFB0:
	.cfi_startproc
	pushq	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset 3, -16
	movq	%rdi, %rbx
	testb	$1, %dil
	jne	.L4
	leaq	(%rdi,%rdi,2), %rax
	popq	%rbx
	.cfi_remember_state
	.cfi_def_cfa_offset 8
	ret
.L4:
	.cfi_restore_state
	movl	$8, %edi
	call	__cxa_allocate_exception
	movq	%rax, %rdi
	movq	%rbx, thrown(%rip)
	movl	$0, %edx
	movl	$_ZTIm, %esi
	call	__cxa_throw
	.cfi_endproc
.LFE0:
	.size	thrower, .-thrower
	.globl	f
	.type	f, @function
f:
.LFB1:
	.cfi_startproc
	.cfi_personality 0x3,__gxx_personality_v0
	.cfi_lsda 0x3,.LLSDA1
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	pushq	%rbx
	.cfi_def_cfa_offset 24
	.cfi_offset 3, -24
	subq	$40, %rsp
	.cfi_def_cfa_offset 64
	movq	%rdi, %rbp
	movq	%rsi, 8(%rsp)
	movq	%rbp, 16(%rsp)
	xorl	%esi, %esi
	movq	8(%rsp), %rdi
	leaq	0(,%rbp,8), %rbx
	subq	%rbp, %rbx
.LEHB0:
	call	thrower
.LEHE0:
	addq	%rax, %rbx
.L5:
	movq	%rbx, %rax
	addq	$40, %rsp
	.cfi_remember_state
	.cfi_def_cfa_offset 24
	popq	%rbx
	.cfi_def_cfa_offset 16
	popq	%rbp
	.cfi_def_cfa_offset 8
	ret
.L9:
	.cfi_restore_state
	movq	%rax, %rdi
	cmpq	$1, %rdx
	je	.L7
.LEHB1:
	call	_Unwind_Resume
.LEHE1:
.L7:
	call	__cxa_begin_catch
	xorl	%ebp, %ebp
	movq	16(%rsp), %rbp
	addq	thrown(%rip), %rbp
	movq	%rbp, 24(%rsp)
	notq	%rbp
	movq	24(%rsp), %rbp
	xorq	%rbp, %rbx
	call	__cxa_end_catch
	jmp	.L5
	.cfi_endproc
.LFE1:
	.comm	thrown,8,8
	.globl	__gxx_personality_v0
	.section	.gcc_except_table,"a",@progbits
	.align 4
.LLSDA1:
	.byte	0xff
	.byte	0x3
	.uleb128 .LLSDATT1-.LLSDATTD1
.LLSDATTD1:
	.byte	0x1
	.uleb128 .LLSDACSE1-.LLSDACSB1
.LLSDACSB1:
	.uleb128 .LEHB0-.LFB1
	.uleb128 .LEHE0-.LEHB0
	.uleb128 .L9-.LFB1
	.uleb128 0x1
	.uleb128 .LEHB1-.LFB1
	.uleb128 .LEHE1-.LEHB1
	.uleb128 0
	.uleb128 0
.LLSDACSE1:
	.byte	0x1
	.byte	0
	.align 4
	.long	_ZTIm
.LLSDATT1:
	.text
	.size	f, .-f
	.section	.note.GNU-stack,"",@progbits
