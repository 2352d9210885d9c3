"""What tests share: the provider under test, sessions, feeds, runners, processes and judges."""
