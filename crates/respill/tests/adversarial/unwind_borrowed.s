	.text
	.globl f
	.type f,@function
f:
.cfi_startproc
pushq %rbp
.cfi_adjust_cfa_offset 8
.cfi_rel_offset %rbp,0
movq %rsp,%rbp
.cfi_def_cfa_register %rbp
movq %rdi,%rcx
subq $16,%rsp
movq %rdi,(%rsp)
movq %rcx,8(%rsp)
addq $5,8(%rsp)
movq 8(%rsp),%rdi
call walk
addq (%rsp),%rax
addq $16,%rsp
popq %rbp
.cfi_def_cfa %rsp,8
.cfi_restore %rbp
ret
.cfi_endproc
	.section .note.GNU-stack,"",@progbits
