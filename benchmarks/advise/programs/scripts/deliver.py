"""Delivers mails into a Maildir, each synced: folder, count."""

import mailbox
import sys

box = mailbox.Maildir(sys.argv[1])
for number in range(int(sys.argv[2])):
    box.add(f"Subject: {number}\n\n{'text ' * 400}\n")
