.globl f
f: subq $24,%rsp
leaq 100(%rdi),%rax
movq %rax,8(%rsp)
leaq 1(%rdi),%rax
movq %rax,(%rsp)
movl %esi,%eax
cmpl $bound,%eax
ja .Lout
movq (%rsp),%rcx
leaq .Lt(%rip),%rdx
movslq (%rdx,%rax,4),%rax
addq %rdx,%rax
jmp *%rax
.La: leaq 1(%rcx),%rax
addq $24,%rsp
ret
.Lb: leaq 2(%rcx),%rax
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
