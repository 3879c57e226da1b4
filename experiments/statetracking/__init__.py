"""Which transitions follow a group: word problems learned at one length and tested at longer ones."""
