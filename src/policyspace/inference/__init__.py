"""Which groups does the agent use or control? Tests of supports, and the two rules that decide by them."""
