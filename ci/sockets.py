# A load of sockets: one process sends blocks of 16 KiB to another. `sockets.py BLOCKS`
import os, socket, sys

server = socket.create_server(("127.0.0.1", 0))
if os.fork() == 0:
    sender = socket.create_connection(server.getsockname())
    for _ in range(int(sys.argv[1])):
        sender.sendall(bytes(16384))
    os._exit(0)
receiver, _ = server.accept()
while receiver.recv(16384):
    pass
os.wait()
