"""Records → what they say of each claim: panels, numbers, figures and the page of results."""
