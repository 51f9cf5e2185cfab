import os, threading
f = os.open("/tmp/study/p", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.write(f, b"x" * 10000); os.lseek(f, 100, os.SEEK_SET); os.read(f, 50); g = os.dup(f); os.read(g, 25)
os.pwrite(f, b"y" * 7, 4096); os.preadv(f, [bytearray(10), bytearray(20)], 9990); os.read(f, 1)
pid = os.fork()
if pid == 0:
    os.read(f, 5); os._exit(0)
os.waitpid(pid, 0); os.read(f, 3)
t = threading.Thread(target=lambda: os.write(f, b"zz")); t.start(); t.join()
a = os.open("/tmp/study/p", os.O_WRONLY | os.O_APPEND); os.write(a, b"end"); os.fsync(a)
o = os.open("/tmp/study/q", os.O_WRONLY | os.O_CREAT | os.O_TRUNC); os.lseek(f, 0, 0); os.copy_file_range(f, o, 64)
os.sendfile(o, f, 10, 6); os.write(o, b"w")
