"""What people look at: pages made from plain values. No torch here."""
