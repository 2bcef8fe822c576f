.globl f
f: subq $24,%rsp
leaq 100(%rdi),%rax
movq %rax,8(%rsp)
leaq 1(%rdi),%rcx
movl %esi,%eax
andl $1,%eax
cmpq $2,%rsi
je .Lother
leaq .Lt(%rip),%rdx
movslq (%rdx,%rax,4),%rax
addq %rdx,%rax
jmp *%rax
.Lother: leaq 7(%rdi),%rax
movq %rax,(%rsp)
leaq tab(%rip),%rdx
movslq 4(%rdx),%rax
addq (%rsp),%rcx
leaq (%rdx,%rax),%rax
testq %rdi,%rdi
jns .Lgo
leaq .La2(%rip),%rax
.Lgo: jmp *%rax
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
.globl tab
.hidden tab
.section .rodata
.Lt:
tab: .long .La-.Lt, .Lb-.Lt
.section .note.GNU-stack,"",@progbits
