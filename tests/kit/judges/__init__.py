"""How tools that wait judge an object by its status, written from what they document and do."""
