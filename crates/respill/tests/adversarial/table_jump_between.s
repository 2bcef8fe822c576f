.globl f
f: subq $24,%rsp
leaq 100(%rdi),%rax
movq %rax,8(%rsp)
leaq 1(%rdi),%rax
movq %rax,(%rsp)
movq (%rsp),%rcx
leaq .Lt(%rip),%rdx
movq %rsi,%r8
andl $1,%r8d
leaq .Lc(%rip),%rax
cmpq $2,%rsi
je .+9
movslq (%rdx,%r8,4),%rax
addq %rdx,%rax
jmp *%rax
.La: leaq 1(%rcx),%rax
addq $24,%rsp
ret
.Lb: leaq 2(%rcx),%rax
cmpq $5,%rdi
je .Lout
addq $24,%rsp
ret
.Lout: leaq 7(%rdi),%rcx
movq %rcx,8(%rsp)
.Lc: movq 8(%rsp),%rax
addq $24,%rsp
ret
.section .rodata
.Lt: .long .La-.Lt, .Lb-.Lt
.section .note.GNU-stack,"",@progbits
