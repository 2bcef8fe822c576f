# The same as GCC compiles it with -fno-dwarf2-cfi-asm: the table of handlers is named in .eh_frame, and by no directive.
	.text
	.globl	thrower
	.type	thrower, @function
thrower:
.LFB2:
	.cfi_startproc
	pushq	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset 3, -16
	movq	%rdi, %rbx
	testb	$1, %dil
	jne	.L14
	leaq	(%rdi,%rdi,2), %rax
	popq	%rbx
	.cfi_remember_state
	.cfi_def_cfa_offset 8
	ret
.L14:
	.cfi_restore_state
	movl	$8, %edi
	call	__cxa_allocate_exception
	movq	%rax, %rdi
	movq	%rbx, (%rax)
	movl	$0, %edx
	movl	$_ZTIm, %esi
	call	__cxa_throw
	.cfi_endproc
.LFE2:
	.size	thrower, .-thrower
	.globl	f
	.type	f, @function
f:
.LFB1:
	pushq	%rbp
.LCFI0:
	movq	%rsp, %rbp
.LCFI1:
	subq	$32, %rsp
	movq	%rdi, -24(%rbp)
	movq	%rsi, -32(%rbp)
	movq	$0, -8(%rbp)
	movq	-24(%rbp), %rax
	movq	%rax, %rdi
.LEHB0:
	call	thrower
.LEHE0:
	movq	-32(%rbp), %rdx
	addq	%rdx, %rax
	movq	%rax, -8(%rbp)
.L5:
	movq	-8(%rbp), %rax
	jmp	.L7
.L6:
	cmpq	$1, %rdx
	je	.L4
	movq	%rax, %rdi
.LEHB1:
	call	_Unwind_Resume@PLT
.LEHE1:
.L4:
	movq	%rax, %rdi
	call	__cxa_begin_catch@PLT
	movl	(%rax), %eax
	movl	%eax, -12(%rbp)
	movq	-24(%rbp), %rdx
	movq	%rdx, %rax
	addq	%rax, %rax
	leaq	(%rax,%rdx), %rcx
	movq	-32(%rbp), %rdx
	movq	%rdx, %rax
	salq	$2, %rax
	addq	%rdx, %rax
	leaq	(%rcx,%rax), %rdx
	movl	-12(%rbp), %eax
	cltq
	addq	%rdx, %rax
	movq	%rax, -8(%rbp)
	call	__cxa_end_catch@PLT
	jmp	.L5
.L7:
	leave
.LCFI2:
	ret
.LFE1:
	.globl	__gxx_personality_v0
	.section	.gcc_except_table,"a",@progbits
	.align 4
.LLSDA0:
	.byte	0xff
	.byte	0x9b
	.uleb128 .LLSDATT0-.LLSDATTD0
.LLSDATTD0:
	.byte	0x1
	.uleb128 .LLSDACSE0-.LLSDACSB0
.LLSDACSB0:
	.uleb128 .LEHB0-.LFB1
	.uleb128 .LEHE0-.LEHB0
	.uleb128 .L6-.LFB1
	.uleb128 0x1
	.uleb128 .LEHB1-.LFB1
	.uleb128 .LEHE1-.LEHB1
	.uleb128 0
	.uleb128 0
.LLSDACSE0:
	.byte	0x1
	.byte	0
	.align 4
	.long	DW.ref._ZTIm-.
.LLSDATT0:
	.text
	.size	f, .-f
	.section	.eh_frame,"a",@progbits
.Lframe1:
	.long	.LECIE1-.LSCIE1
.LSCIE1:
	.long	0
	.byte	0x3
	.string	"zPLR"
	.uleb128 0x1
	.sleb128 -8
	.uleb128 0x10
	.uleb128 0x7
	.byte	0x9b
	.long	DW.ref.__gxx_personality_v0-.
	.byte	0x1b
	.byte	0x1b
	.byte	0xc
	.uleb128 0x7
	.uleb128 0x8
	.byte	0x90
	.uleb128 0x1
	.align 8
.LECIE1:
.LSFDE1:
	.long	.LEFDE1-.LASFDE1
.LASFDE1:
	.long	.LASFDE1-.Lframe1
	.long	.LFB1-.
	.long	.LFE1-.LFB1
	.uleb128 0x4
	.long	.LLSDA0-.
	.byte	0x4
	.long	.LCFI0-.LFB1
	.byte	0xe
	.uleb128 0x10
	.byte	0x86
	.uleb128 0x2
	.byte	0x4
	.long	.LCFI1-.LCFI0
	.byte	0xd
	.uleb128 0x6
	.byte	0x4
	.long	.LCFI2-.LCFI1
	.byte	0xc
	.uleb128 0x7
	.uleb128 0x8
	.align 8
.LEFDE1:
	.hidden	DW.ref._ZTIm
	.weak	DW.ref._ZTIm
	.section	.data.rel.local.DW.ref._ZTIm,"awG",@progbits,DW.ref._ZTIm,comdat
	.align 8
	.type	DW.ref._ZTIm, @object
	.size	DW.ref._ZTIm, 8
DW.ref._ZTIm:
	.quad	_ZTIm
	.hidden	DW.ref.__gxx_personality_v0
	.weak	DW.ref.__gxx_personality_v0
	.section	.data.rel.local.DW.ref.__gxx_personality_v0,"awG",@progbits,DW.ref.__gxx_personality_v0,comdat
	.align 8
	.type	DW.ref.__gxx_personality_v0, @object
	.size	DW.ref.__gxx_personality_v0, 8
DW.ref.__gxx_personality_v0:
	.quad	__gxx_personality_v0
	.ident	"GCC: (Debian 12.2.0-14+deb12u1) 12.2.0"
	.section	.note.GNU-stack,"",@progbits
