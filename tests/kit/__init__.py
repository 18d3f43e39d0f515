"""What tests share: worlds to run things in, peers, references, generators and builders of objects.

Nothing else is imported between test modules (``tests/unit/test_tests.py`` says so). A helper that
two test modules need moves here, to the folder of its subject:

``sim``        virtual time, injected faults, a server and its clients in one process
``chain``      the edge chain: hubs with one of its controllers, histories, the placement reference
``server``     a server without sockets, its objects, requests and people; hubs with workspaces
``store``      the stores, a model of them, an etcd of one's own
``scheduler``  the reference the scheduler must agree with, and the clusters to try it on
``machinery``  schemas, definitions and objects to judge
``agent``      an edge's node agent without a host
``e2e``        real processes, real clients
``seeds``      what the source documents print
"""
