	.text
	.globl f
	.type f,@function
f:
	subq $24,%rsp
	movq %rdi,8(%rsp)
	movq $8,%rax
	leaq (%rsp,%rax),%rcx
	xorl %eax,%eax
	orq %rsp,%rax
	addq $3,8(%rax)
	movq 8(%rsp),%rax
	addq $24,%rsp
	ret
	.section .note.GNU-stack,"",@progbits
