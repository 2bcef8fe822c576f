	.text
	.globl f
	.type f,@function
f:
.cfi_startproc
pushq %r12
.cfi_adjust_cfa_offset 8
.cfi_rel_offset %r12,0
subq $16,%rsp
.cfi_adjust_cfa_offset 16
movq %rdi,(%rsp)
movq %rbx,8(%rsp)
.cfi_rel_offset %rbx,8
movq %rbx,%r12
movq %rsi,%rbx
notq %rbx
call walk
movq %r12,%rbx
.cfi_restore %rbx
addq (%rsp),%rax
movq %rax,8(%rsp)
movq $0,%rax
movq 8(%rsp),%rax
addq $16,%rsp
.cfi_adjust_cfa_offset -16
popq %r12
.cfi_adjust_cfa_offset -8
ret
.cfi_endproc
	.section .note.GNU-stack,"",@progbits
