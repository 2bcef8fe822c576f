.globl f
f: subq $24,%rsp
leaq 100(%rdi),%rax
movq %rax,8(%rsp)
leaq 1(%rdi),%rcx
cmpq $2,%rsi
je .Lother
leaq .Lt(%rip),%rdx
movl %esi,%r8d
andl $1,%r8d
movslq (%rdx,%r8,4),%rax
addq %rdx,%rax
jmp *%rax
.Lother: leaq 7(%rdi),%rax
movq %rax,(%rsp)
leaq .Lz(%rip),%rdx
movslq 4(%rdx),%rax
leaq (%rdx,%rax),%rax
cmpq $1234567,%rdi
jne .Lgo
leaq .La2(%rip),%rax
.Lgo: addq (%rsp),%rcx
jmp *%rax
.La: leaq 1(%rcx),%rax
addq $24,%rsp
ret
.La2: leaq 5(%rcx),%rax
addq $24,%rsp
ret
.Lb: movq 8(%rsp),%rax
addq %rcx,%rax
addq $24,%rsp
ret
.section .rodata
.Lz:
.Lt: .long .La-.Lt, .Lb-.Lt
.section .note.GNU-stack,"",@progbits
